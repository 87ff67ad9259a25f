//! The living ranks of each job, in the store. Each rank keeps a connection; if that ends without a
//! goodbye, the rank has died.

use super::wire::{self, Code, Message, lock};
use std::collections::{BTreeSet, HashMap};
use std::io::{self, ErrorKind};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A rank without a heartbeat for this long is considered dead, even if its connection is open.
pub const SILENCE: Duration = Duration::from_secs(30);
/// This many failed jobs without ranks are remembered, for ranks that come late.
const REMEMBERED: usize = 1024;
pub const LONGEST_TEXT: usize = 64 << 10;

struct Member {
    stream: Arc<TcpStream>,
    sending: Mutex<()>,
}

impl Member {
    /// Sends a message. A rank that does not receive it in time is disconnected; its own thread then finds
    /// it dead.
    fn tell(&self, code: Code, parts: &[&[u8]]) {
        let _sending = lock(&self.sending);
        let end = Instant::now() + Duration::from_secs(2);
        let mut idle = || if Instant::now() < end { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
        if wire::send(&self.stream, code, parts, &mut idle).is_err() {
            let _ = self.stream.shutdown(std::net::Shutdown::Both);
        }
    }
}

#[derive(Default)]
struct Job {
    failure: Option<String>,
    members: HashMap<i64, Arc<Member>>,
    notes: HashMap<i64, String>,
    left: BTreeSet<i64>,
}

#[derive(Default)]
pub struct Jobs(Mutex<HashMap<String, Job>>);

/// A rank, from its Join message.
struct Rank<'a> {
    job: &'a str,
    rank: i64,
    size: i64,
    member: Arc<Member>,
}

/// The reason why a rank's connection ended.
enum End {
    Goodbye,
    Failed(String),
}

impl Jobs {
    /// Returns the number of connected ranks.
    pub fn count_ranks(&self) -> usize {
        lock(&self.0).values().map(|job| job.members.len()).sum()
    }

    /// Serves a rank's connection until it ends.
    pub fn serve(&self, stream: Arc<TcpStream>, join: &Message, is_stopped: &dyn Fn() -> bool) {
        let Ok((job, rank, size)) = introduction(join) else { return };
        let member = Arc::new(Member { stream, sending: Mutex::new(()) });
        let rank = Rank { job, rank, size, member };
        self.join(&rank);
        let end = self.listen(&rank);
        // When the store stops it closes all connections, which does not mean that the ranks died.
        if !is_stopped() {
            self.part(&rank, end);
        }
    }

    fn join(&self, rank: &Rank<'_>) {
        let mut jobs = lock(&self.0);
        let job = jobs.entry(rank.job.to_owned()).or_default();
        job.left.remove(&rank.rank);
        job.notes.remove(&rank.rank);
        job.members.insert(rank.rank, rank.member.clone());
        let (failure, left) = (job.failure.clone(), job.left.clone());
        drop(jobs);
        rank.member.tell(Code::Done, &[]);
        if let Some(failure) = failure {
            rank.member.tell(Code::Failure, &[failure.as_bytes()]);
        }
        for other in left {
            rank.member.tell(Code::Left, &[&other.to_le_bytes()]);
        }
    }

    fn listen(&self, rank: &Rank<'_>) -> End {
        let who = rank.rank;
        let mut heard = Instant::now();
        loop {
            let mut idle =
                |_| if heard.elapsed() < SILENCE { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
            let message = match wire::receive(&rank.member.stream, &mut idle) {
                Ok(message) => message,
                Err(error) if error.kind() == ErrorKind::TimedOut => {
                    return End::Failed(format!(
                        "rank {who} ended (no heartbeat for {} s)",
                        SILENCE.as_secs()
                    ));
                }
                Err(_) => return End::Failed(format!("rank {who} ended (exit or signal)")),
            };
            heard = Instant::now();
            let text = || message.text(0).ok().filter(|text| text.len() <= LONGEST_TEXT).map(str::to_owned);
            match message.code {
                Code::Beat => {
                    if let Some(note) = text() {
                        lock(&self.0).entry(rank.job.to_owned()).or_default().notes.insert(who, note);
                    }
                    rank.member.tell(Code::Beat, &[]);
                }
                Code::Notes => self.tell_notes(rank),
                Code::Fail => {
                    let reason = text().unwrap_or_default();
                    self.fail(rank, format!("rank {who}: {reason}"));
                }
                Code::Goodbye => return End::Goodbye,
                _ => return End::Failed(format!("rank {who} ended (it sent an invalid message)")),
            }
        }
    }

    /// Sends the notes of all ranks, one part each: empty if the rank has none, otherwise `+` and the note.
    fn tell_notes(&self, rank: &Rank<'_>) {
        let notes: Vec<Vec<u8>> = {
            let jobs = lock(&self.0);
            let notes = jobs.get(rank.job).map(|job| &job.notes);
            let note =
                |at| notes.and_then(|notes| notes.get(&at)).map(|note| [b"+", note.as_bytes()].concat());
            (0..rank.size).map(|at| note(at).unwrap_or_default()).collect()
        };
        let parts: Vec<&[u8]> = notes.iter().map(Vec::as_slice).collect();
        rank.member.tell(Code::Notes, &parts);
    }

    /// Marks the job as failed and tells all other ranks. Only the first failure counts.
    fn fail(&self, rank: &Rank<'_>, text: String) {
        let others = {
            let mut jobs = lock(&self.0);
            let job = jobs.entry(rank.job.to_owned()).or_default();
            if job.failure.is_some() {
                return;
            }
            job.failure = Some(text.clone());
            job.others(rank.rank)
        };
        for other in others {
            other.tell(Code::Failure, &[text.as_bytes()]);
        }
    }

    fn part(&self, rank: &Rank<'_>, end: End) {
        let others = {
            let mut jobs = lock(&self.0);
            let Some(job) = jobs.get_mut(rank.job) else { return };
            // A newer connection of the same rank has replaced this one.
            if !job.members.get(&rank.rank).is_some_and(|member| Arc::ptr_eq(member, &rank.member)) {
                return;
            }
            job.members.remove(&rank.rank);
            if matches!(end, End::Goodbye) {
                job.left.insert(rank.rank);
            }
            job.others(rank.rank)
        };
        match end {
            End::Failed(text) => self.fail(rank, text),
            End::Goodbye => {
                for other in &others {
                    other.tell(Code::Left, &[&rank.rank.to_le_bytes()]);
                }
            }
        }
        let mut jobs = lock(&self.0);
        if jobs.get(rank.job).is_some_and(|job| job.members.is_empty() && job.failure.is_none()) {
            jobs.remove(rank.job);
        }
        if jobs.len() > REMEMBERED {
            jobs.retain(|_, job| !job.members.is_empty());
        }
    }
}

impl Job {
    fn others(&self, rank: i64) -> Vec<Arc<Member>> {
        self.members.iter().filter(|(other, _)| **other != rank).map(|(_, member)| member.clone()).collect()
    }
}

fn introduction(join: &Message) -> io::Result<(&str, i64, i64)> {
    let (job, rank, size) = (join.text(0)?, join.number(1)?, join.number(2)?);
    if job.len() > wire::LONGEST_KEY || !(0..size).contains(&rank) || size > 1 << 20 {
        return Err(wire::malformed("no such rank"));
    }
    Ok((job, rank, size))
}
