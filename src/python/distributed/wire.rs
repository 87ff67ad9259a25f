//! Messages between ranks and the store: a code, and parts of bytes, each after its length. Whatever else comes ends the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What both sides of a connection say first.
pub const HELLO: &[u8; 9] = b"gradiron1";

pub const LONGEST_KEY: usize = 4 << 10;
pub const LONGEST_VALUE: usize = 64 << 20;
const LONGEST_MESSAGE: usize = 4 * LONGEST_VALUE;
/// No more than this is allocated before its bytes are here.
const CHUNK: usize = 1 << 20;

/// What a message is about. Requests come first, then answers, then what the ranks of a job tell one another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Code {
    Set,
    Get,
    Add,
    Wait,
    CompareSet,
    Delete,
    CountKeys,
    ListKeys,
    Append,
    Check,
    MultiGet,
    MultiSet,
    Push,
    Pop,
    QueueLength,
    Done,
    TimedOut,
    /// A queue that holds nothing.
    Empty,
    Refused,
    /// A rank's first words: its job, number and size of the world.
    Join,
    /// A rank lives; perhaps with what it does now.
    Beat,
    Notes,
    Fail,
    Goodbye,
    /// Why the job of a rank cannot go on.
    Failure,
    /// A rank has said goodbye.
    Left,
}

const CODES: [Code; 26] = {
    use Code::*;
    [
        Set,
        Get,
        Add,
        Wait,
        CompareSet,
        Delete,
        CountKeys,
        ListKeys,
        Append,
        Check,
        MultiGet,
        MultiSet,
        Push,
        Pop,
        QueueLength,
        Done,
        TimedOut,
        Empty,
        Refused,
        Join,
        Beat,
        Notes,
        Fail,
        Goodbye,
        Failure,
        Left,
    ]
};

pub struct Message {
    pub code: Code,
    pub parts: Vec<Vec<u8>>,
}

impl Message {
    /// A part that is a number.
    pub fn number(&self, at: usize) -> io::Result<i64> {
        let bytes = self.parts.get(at).and_then(|part| part.as_slice().try_into().ok());
        bytes.map(i64::from_le_bytes).ok_or_else(|| malformed("a number has eight bytes"))
    }
    /// A part that is text.
    pub fn text(&self, at: usize) -> io::Result<&str> {
        let text = self.parts.get(at).and_then(|part| std::str::from_utf8(part).ok());
        text.ok_or_else(|| malformed("a text is in UTF-8"))
    }
}

pub fn malformed(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed message: {text}"))
}

/// What is asked each time that a connection has been silent for as long as its timeouts say; an error ends the waiting.
pub type Idle<'a> = &'a mut dyn FnMut() -> io::Result<()>;

fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The next bytes of a connection.
pub fn take(mut stream: &TcpStream, count: usize, idle: Idle<'_>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut filled = 0;
    while filled < count {
        if filled == bytes.len() {
            bytes.resize(count.min(filled + CHUNK), 0);
        }
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => filled += more,
            Err(error) if is_idle(&error) => idle()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

pub fn give(mut stream: &TcpStream, mut bytes: &[u8], idle: Idle<'_>) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if is_idle(&error) => idle()?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits for a message. Between messages a connection may be silent: `idle` is told whether one has begun.
pub fn receive(stream: &TcpStream, idle: &mut dyn FnMut(bool) -> io::Result<()>) -> io::Result<Message> {
    let head = take(stream, 1, &mut || idle(false))?;
    let code = *CODES.get(usize::from(head[0])).ok_or_else(|| malformed("an unknown code"))?;
    let length = take(stream, 4, &mut || idle(true))?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length > LONGEST_MESSAGE {
        return Err(malformed("too long"));
    }
    let body = take(stream, length, &mut || idle(true))?;
    let mut parts = Vec::new();
    let mut rest = body.as_slice();
    while let Some((length, after)) = rest.split_at_checked(4) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let (part, after) = after.split_at_checked(length).ok_or_else(|| malformed("a part is cut off"))?;
        parts.push(part.to_vec());
        rest = after;
    }
    if rest.is_empty() { Ok(Message { code, parts }) } else { Err(malformed("bytes are left over")) }
}

pub fn send(stream: &TcpStream, code: Code, parts: &[&[u8]], idle: Idle<'_>) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len() + 4).sum();
    if length > LONGEST_MESSAGE {
        let text = format!("a message of {length} bytes is longer than {LONGEST_MESSAGE}");
        return Err(io::Error::new(ErrorKind::InvalidInput, text));
    }
    let mut bytes = Vec::with_capacity(length + 5);
    bytes.push(code as u8);
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
    for part in parts {
        bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    give(stream, &bytes, idle)
}

/// Reads and writes come back after this long to look at what else there is.
pub fn set_patience(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

/// Locks, also after a panic elsewhere: what is behind these locks is whole between any two statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
