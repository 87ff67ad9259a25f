//! A rank's connection to the store, through which the ranks of a job learn that one has died.

use super::client::{Connection, StoreAddress};
use super::wire::{self, Code, lock};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::Builder;
use std::time::{Duration, Instant};

const BEAT: Duration = Duration::from_secs(1);
const STACK: usize = 128 << 10;

#[derive(Default)]
struct WatchState {
    left: BTreeSet<i64>,
    /// The answer to the last request for notes.
    notes: Option<Vec<Option<String>>>,
    /// True once this rank has said goodbye.
    is_leaving: bool,
    /// True once the connection has ended.
    is_over: bool,
}

/// State shared by a rank's program and its watching thread.
pub struct Link {
    place: StoreAddress,
    connection: Connection,
    sending: Mutex<()>,
    failure: OnceLock<String>,
    note: Mutex<Option<String>>,
    is_note_new: AtomicBool,
    news: Mutex<WatchState>,
    changed: Condvar,
    has_left: AtomicBool,
    /// The deadline for MPI's start, while it starts.
    start_ends: Mutex<Option<Instant>>,
}

impl Link {
    pub fn open(
        place: StoreAddress,
        names: (&str, i64, i64),
        timeout: Duration,
        idle: wire::Idle<'_>,
    ) -> io::Result<Arc<Link>> {
        let connection = place.connect(timeout, idle)?;
        let (job, rank, size) = names;
        let parts: [&[u8]; 3] = [job.as_bytes(), &rank.to_le_bytes(), &size.to_le_bytes()];
        // A failure of another rank may arrive before the answer: the thread reads both.
        wire::send(&connection.stream, Code::Join, &parts, idle)?;
        wire::set_patience(&connection.stream, BEAT)?;
        let link = Arc::new(Link {
            place,
            connection,
            sending: Mutex::default(),
            failure: OnceLock::new(),
            note: Mutex::default(),
            is_note_new: AtomicBool::new(false),
            news: Mutex::default(),
            changed: Condvar::new(),
            has_left: AtomicBool::new(false),
            start_ends: Mutex::default(),
        });
        let watching = link.clone();
        Builder::new().name("watch".to_owned()).stack_size(STACK).spawn(move || watching.listen())?;
        Ok(link)
    }

    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }
    /// Marks the start of MPI. If MPI cannot start, this process exits: nothing can interrupt MPI, and it
    /// holds the interpreter's lock.
    pub fn begin_start(&self, timeout: Duration) {
        *lock(&self.start_ends) = Some(Instant::now() + timeout);
        self.look_at_start();
    }
    pub fn end_start(&self) {
        *lock(&self.start_ends) = None;
    }
    fn look_at_start(&self) {
        let Some(end) = *lock(&self.start_ends) else { return };
        let why = match self.failure() {
            Some(failure) => failure,
            None if Instant::now() >= end => "not all ranks came in time",
            None => return,
        };
        eprintln!("gradiron: MPI could not start: {why}");
        std::process::abort();
    }
    /// Returns the ranks that have said goodbye.
    pub fn left(&self) -> Vec<i64> {
        if !self.has_left.load(Ordering::Acquire) {
            return Vec::new();
        }
        lock(&self.news).left.iter().copied().collect()
    }
    pub fn set_note(&self, text: &str) {
        let mut note = lock(&self.note);
        match &mut *note {
            Some(old) => {
                old.clear();
                old.push_str(text);
            }
            None => *note = Some(text.to_owned()),
        }
        self.is_note_new.store(true, Ordering::Release);
    }
    pub fn fail(&self, reason: &str) {
        let mut end = reason.len().min(super::jobs::LONGEST_TEXT);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        // If the message cannot be sent, the others notice the end of the connection instead.
        let _ = self.send(Code::Fail, &[&reason.as_bytes()[..end]]);
    }
    /// Returns the last note of each rank; None if the store does not answer.
    pub fn notes(&self, timeout: Duration) -> Option<Vec<Option<String>>> {
        lock(&self.news).notes = None;
        self.beat().and_then(|()| self.send(Code::Notes, &[])).ok()?;
        let news = lock(&self.news);
        let waiting = |news: &mut WatchState| news.notes.is_none() && !news.is_over;
        let waited = self.changed.wait_timeout_while(news, timeout, waiting);
        waited.unwrap_or_else(std::sync::PoisonError::into_inner).0.notes.take()
    }
    /// Says goodbye, and waits until the store has read it.
    pub fn goodbye(&self, timeout: Duration) {
        lock(&self.news).is_leaving = true;
        if self.send(Code::Goodbye, &[]).is_ok() {
            let news = lock(&self.news);
            drop(self.changed.wait_timeout_while(news, timeout, |news| !news.is_over));
        }
        self.hang_up();
    }
    /// Closes the connection, with or without a goodbye.
    pub fn hang_up(&self) {
        lock(&self.news).is_leaving = true;
        let _ = self.connection.stream.shutdown(Shutdown::Both);
    }
    #[cfg(unix)]
    pub fn descriptor(&self) -> std::os::fd::RawFd {
        std::os::fd::AsRawFd::as_raw_fd(&self.connection.stream)
    }

    fn send(&self, code: Code, parts: &[&[u8]]) -> io::Result<()> {
        let _sending = lock(&self.sending);
        let end = Instant::now() + super::jobs::SILENCE;
        let mut idle = || if Instant::now() < end { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
        wire::send(&self.connection.stream, code, parts, &mut idle)
    }
    fn beat(&self) -> io::Result<()> {
        let note = self.is_note_new.swap(false, Ordering::AcqRel).then(|| lock(&self.note).clone()).flatten();
        match &note {
            Some(note) => self.send(Code::Beat, &[note.as_bytes()]),
            None => self.send(Code::Beat, &[]),
        }
    }

    /// The watching thread: sends heartbeats, and receives the store's messages.
    fn listen(&self) {
        let Err(error) = self.hear();
        if !lock(&self.news).is_leaving {
            let why = if error.kind() == ErrorKind::TimedOut {
                format!("does not answer for {} s", super::jobs::SILENCE.as_secs())
            } else {
                "ended".to_owned()
            };
            let _ = self.failure.set(format!("the store at {}:{} {why}", self.place.host, self.place.port));
            self.look_at_start();
        }
        lock(&self.news).is_over = true;
        self.changed.notify_all();
    }
    fn hear(&self) -> io::Result<Infallible> {
        let mut last_beat: Option<Instant> = None;
        let mut heard = Instant::now();
        loop {
            let mut idle = |_| {
                self.look_at_start();
                if last_beat.is_none_or(|at| at.elapsed() >= BEAT) {
                    last_beat = Some(Instant::now());
                    self.beat()?;
                }
                if heard.elapsed() < super::jobs::SILENCE { Ok(()) } else { Err(ErrorKind::TimedOut.into()) }
            };
            let message = wire::receive(&self.connection.stream, &mut idle)?;
            heard = Instant::now();
            match message.code {
                Code::Failure => {
                    let _ = self.failure.set(message.text(0)?.to_owned());
                    self.look_at_start();
                }
                Code::Left => {
                    lock(&self.news).left.insert(message.number(0)?);
                    self.has_left.store(true, Ordering::Release);
                }
                Code::Notes => {
                    let text = |part: &Vec<u8>| {
                        part.split_first().map(|(_, text)| String::from_utf8_lossy(text).into_owned())
                    };
                    lock(&self.news).notes = Some(message.parts.iter().map(text).collect());
                    self.changed.notify_all();
                }
                _ => {}
            }
        }
    }
}
