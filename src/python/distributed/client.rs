//! A client's connection to the store.

use super::wire::{self, Code, HELLO, Idle, Message};
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// A client that waits for the store checks for Ctrl-C at this interval.
const PATIENCE: Duration = Duration::from_millis(100);
/// The store itself ends a wait; a store that is silent for this much longer is considered dead.
const GRACE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub struct StoreAddress {
    pub host: String,
    pub port: u16,
}

pub struct Connection {
    pub stream: TcpStream,
}

fn timed_out(text: String) -> io::Error {
    io::Error::new(ErrorKind::TimedOut, text)
}

impl StoreAddress {
    /// Connects as soon as there is a store, or fails when the time is over.
    pub fn connect(&self, timeout: Duration, idle: Idle<'_>) -> io::Result<Connection> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(2);
        loop {
            let error = match self.try_connect(timeout.saturating_sub(start.elapsed()), idle)? {
                Ok(connection) => return Ok(connection),
                Err(error) => error,
            };
            idle()?;
            if start.elapsed() >= timeout {
                return Err(timed_out(format!(
                    "The client socket has timed out after {}ms while trying to connect to ({}, {}). Last error: {error}",
                    timeout.as_millis(),
                    self.host,
                    self.port
                )));
            }
            std::thread::sleep(pause.min(timeout.saturating_sub(start.elapsed())));
            pause = (pause * 2).min(PATIENCE);
        }
    }

    /// Connects to a store that has existed before: if it does not answer, it will not come back, so this
    /// does not wait.
    pub fn connect_again(&self, timeout: Duration, idle: Idle<'_>) -> io::Result<Connection> {
        self.try_connect(timeout.min(GRACE), idle)?.map_err(|error| {
            let text = format!("the store at {}:{} cannot be reached: {error}", self.host, self.port);
            io::Error::new(ErrorKind::ConnectionRefused, text)
        })
    }

    /// The outer error is one for which another try is useless: Ctrl-C, or a server that is not a store.
    fn try_connect(&self, timeout: Duration, idle: Idle<'_>) -> io::Result<io::Result<Connection>> {
        let start = Instant::now();
        let mut last = io::Error::from(ErrorKind::AddrNotAvailable);
        let addresses = match (self.host.as_str(), self.port).to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(error) => return Ok(Err(error)),
        };
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE * 2) {
                Ok(stream) => {
                    let mut stopped = None;
                    let mut waiting = || {
                        if let Err(error) = idle() {
                            stopped = Some(error);
                            return Err(ErrorKind::Interrupted.into());
                        }
                        if start.elapsed() < timeout {
                            Ok(())
                        } else {
                            Err(timed_out("it sent no greeting".to_owned()))
                        }
                    };
                    let greeted = greet(&stream, &mut waiting);
                    if let Some(error) = stopped {
                        return Err(error);
                    }
                    match greeted {
                        Ok(true) => return Ok(Ok(Connection { stream })),
                        Ok(false) => {
                            let text =
                                format!("the server at {address} is not a gradiron store of this version");
                            return Err(io::Error::new(ErrorKind::InvalidData, text));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(error) => last = error,
            }
            idle()?;
        }
        Ok(Err(last))
    }
}

/// Exchanges greetings; returns true if a store answers.
fn greet(stream: &TcpStream, waiting: Idle<'_>) -> io::Result<bool> {
    wire::set_patience(stream, PATIENCE)?;
    wire::send_bytes(stream, HELLO, waiting)?;
    Ok(wire::receive_bytes(stream, HELLO.len(), waiting)? == HELLO)
}

impl Connection {
    /// Sends a request and waits for its answer.
    pub fn ask(&self, code: Code, parts: &[&[u8]], timeout: Duration, idle: Idle<'_>) -> io::Result<Message> {
        let start = Instant::now();
        let mut waiting = || {
            idle()?;
            if start.elapsed() < timeout.saturating_add(GRACE) {
                return Ok(());
            }
            Err(timed_out(format!("The store has not answered for {}ms", start.elapsed().as_millis())))
        };
        wire::send(&self.stream, code, parts, &mut waiting).map_err(hung_up)?;
        wire::receive(&self.stream, &mut |_| waiting()).map_err(hung_up)
    }
}

/// Makes PyTorch's message for a store that closes the connection during a request.
fn hung_up(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(
            ErrorKind::ConnectionReset,
            "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        ),
        _ => error,
    }
}
