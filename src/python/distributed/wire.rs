//! Messages between ranks and the store: a code, and parts of bytes, each preceded by its length. Anything
//! else closes the connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The greeting that both sides of a connection send first.
pub const HELLO: &[u8; 9] = b"gradiron1";

pub const LONGEST_KEY: usize = 4 << 10;
pub const LONGEST_VALUE: usize = 64 << 20;
const LONGEST_MESSAGE: usize = 4 * LONGEST_VALUE;
/// At most this much is allocated before its bytes have arrived.
const CHUNK: usize = 1 << 20;

/// The kind of a message. Requests come first, then answers, then messages between the ranks of a job.
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
    /// The queue is empty.
    Empty,
    Refused,
    /// A rank's first message: job, rank and world size.
    Join,
    /// A heartbeat, perhaps with a note.
    Beat,
    Notes,
    Fail,
    Goodbye,
    /// The reason why a rank's job cannot go on.
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
    /// Reads a part as a number.
    pub fn number(&self, at: usize) -> io::Result<i64> {
        let bytes = self.parts.get(at).and_then(|part| part.as_slice().try_into().ok());
        bytes.map(i64::from_le_bytes).ok_or_else(|| malformed("a number must have eight bytes"))
    }
    /// Reads a part as text.
    pub fn text(&self, at: usize) -> io::Result<&str> {
        let text = self.parts.get(at).and_then(|part| std::str::from_utf8(part).ok());
        text.ok_or_else(|| malformed("a text must be UTF-8"))
    }
}

pub fn malformed(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("malformed message: {text}"))
}

/// Called each time a connection was silent for its timeout; an error ends the wait.
pub type Idle<'a> = &'a mut dyn FnMut() -> io::Result<()>;

fn is_idle(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// Receives `count` bytes.
pub fn receive_bytes(mut stream: &TcpStream, count: usize, idle: Idle<'_>) -> io::Result<Vec<u8>> {
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

pub fn send_bytes(mut stream: &TcpStream, mut bytes: &[u8], idle: Idle<'_>) -> io::Result<()> {
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

/// Receives a message. Between messages a connection may be silent: `idle` is told whether one has begun.
pub fn receive(stream: &TcpStream, idle: &mut dyn FnMut(bool) -> io::Result<()>) -> io::Result<Message> {
    let head = receive_bytes(stream, 1, &mut || idle(false))?;
    let code = *CODES.get(usize::from(head[0])).ok_or_else(|| malformed("an unknown code"))?;
    let length = receive_bytes(stream, 4, &mut || idle(true))?;
    let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
    if length > LONGEST_MESSAGE {
        return Err(malformed("too long"));
    }
    let body = receive_bytes(stream, length, &mut || idle(true))?;
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
    send_bytes(stream, &bytes, idle)
}

/// Sets the timeout after which a read or write calls `idle`.
pub fn set_patience(stream: &TcpStream, patience: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))
}

/// Locks, even after a panic elsewhere: the data behind these locks is consistent between any two
/// statements.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
