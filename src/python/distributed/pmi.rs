//! PMI-1, the protocol with which MPICH and Intel MPI find the other ranks: lines of `key=value` on a
//! socket, answered from the store. MPI starts while the interpreter's lock is held, so no Python code
//! takes part.

use super::client::{Connection, StoreAddress};
use super::wire::{self, Code};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::thread::Builder;
use std::time::Duration;

const STACK: usize = 128 << 10;
const LONGEST_LINE: u64 = 64 << 10;

struct Pmi {
    store: Connection,
    job: String,
    size: i64,
    mapping: String,
    /// The name of the memory file that ranks on one machine share; unique for each start.
    name: String,
    barriers: u64,
    timeout: Duration,
}

/// The keys and values of a line.
type Words<'a> = HashMap<&'a str, &'a str>;

/// Serves one rank's MPI; returns the descriptor that MPI reads from PMI_FD.
pub fn serve(
    place: &StoreAddress,
    job: &str,
    size: i64,
    mapping: &str,
    timeout: Duration,
    idle: wire::Idle<'_>,
) -> io::Result<RawFd> {
    let store = place.connect(timeout, idle)?;
    let proposed = format!("gradiron_{:016x}", std::hash::RandomState::new().build_hasher().finish());
    let key = format!("{job}/pmi/name");
    let agreed = store.ask(Code::CompareSet, &[key.as_bytes(), b"", proposed.as_bytes()], timeout, idle)?;
    let name = agreed.text(0)?.to_owned();
    let (ours, theirs) = UnixStream::pair()?;
    let mut pmi =
        Pmi { store, job: job.to_owned(), size, mapping: mapping.to_owned(), name, barriers: 0, timeout };
    let converse = move || {
        if let Err(error) = pmi.converse(&ours) {
            // MPI's own error would only say that the connection was closed.
            eprintln!("gradiron: MPI could not start: {error}");
        }
    };
    Builder::new().name("pmi".to_owned()).stack_size(STACK).spawn(converse)?;
    Ok(theirs.into_raw_fd())
}

impl Pmi {
    fn converse(&mut self, stream: &UnixStream) -> io::Result<()> {
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        loop {
            line.clear();
            if (&mut lines).take(LONGEST_LINE).read_line(&mut line)? == 0 {
                return Ok(());
            }
            let words: Words<'_> = line.split_whitespace().filter_map(|word| word.split_once('=')).collect();
            let command = words.get("cmd").copied().unwrap_or_default();
            let Some(answer) = self.answer(command, &words)? else { continue };
            let written = (&*stream).write_all(format!("{answer}\n").as_bytes());
            if command == "finalize" || written.is_err() {
                return Ok(());
            }
        }
    }

    fn answer(&mut self, command: &str, words: &Words<'_>) -> io::Result<Option<String>> {
        let key = |key: &str| format!("{}/pmi/key/{key}", self.job);
        let word = |name: &str| words.get(name).copied().unwrap_or_default();
        Ok(Some(match command {
            "init" => "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0".to_owned(),
            "get_maxes" => "cmd=maxes kvsname_max=256 keylen_max=256 vallen_max=1024 rc=0".to_owned(),
            "get_appnum" => "cmd=appnum appnum=0 rc=0".to_owned(),
            "get_my_kvsname" => format!("cmd=my_kvsname kvsname={} rc=0", self.name),
            "get_universe_size" => format!("cmd=universe_size size={} rc=0", self.size),
            "put" => {
                self.ask(Code::Set, &[key(word("key")).as_bytes(), word("value").as_bytes()])?;
                "cmd=put_result rc=0 msg=success".to_owned()
            }
            "get" => match self.get(word("key"), &key(word("key")))? {
                Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                None => format!("cmd=get_result rc=-1 msg=key_{}_not_found value=unknown", word("key")),
            },
            "barrier_in" => {
                self.meet()?;
                "cmd=barrier_out rc=0".to_owned()
            }
            "finalize" => "cmd=finalize_ack rc=0".to_owned(),
            // The process ends itself after this command.
            "abort" => return Ok(None),
            // Lines inside a multi-line command have no answer.
            "" => return Ok(None),
            other => {
                let name = other.split('_').next().unwrap_or_default();
                format!("cmd={name}_result rc=-1 msg=not_supported")
            }
        }))
    }

    fn ask(&self, code: Code, parts: &[&[u8]]) -> io::Result<wire::Message> {
        let message = self.store.ask(code, parts, self.timeout, &mut || Ok(()))?;
        match message.code {
            Code::Refused => Err(io::Error::new(ErrorKind::InvalidInput, message.text(0)?.to_owned())),
            _ => Ok(message),
        }
    }

    fn get(&self, name: &str, key: &str) -> io::Result<Option<String>> {
        if name == "PMI_process_mapping" {
            return Ok(Some(self.mapping.clone()));
        }
        let found = self.ask(Code::Get, &[&0i64.to_le_bytes(), key.as_bytes()])?;
        if found.code == Code::TimedOut { Ok(None) } else { Ok(Some(found.text(0)?.to_owned())) }
    }

    /// Waits at a barrier for all ranks.
    fn meet(&mut self) -> io::Result<()> {
        self.barriers += 1;
        let counter = format!("{}/pmi/barrier/{}", self.job, self.barriers);
        let open = format!("{counter}/open");
        let arrived = self.ask(Code::Add, &[counter.as_bytes(), &1i64.to_le_bytes()])?.number(0)?;
        if arrived >= self.size {
            self.ask(Code::Set, &[open.as_bytes(), b""])?;
        }
        let time = (self.timeout.as_millis() as i64).to_le_bytes();
        if self.ask(Code::Wait, &[&time, open.as_bytes()])?.code == Code::Done {
            return Ok(());
        }
        let text = format!("not all of {} ranks came within {} s", self.size, self.timeout.as_secs());
        Err(io::Error::new(ErrorKind::TimedOut, text))
    }
}
