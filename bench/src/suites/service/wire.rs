//! A connection with buffers: one write for all output, one read for all input.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

use servers::Address;

/// Something to read from and to write to.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(super) async fn open(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}

/// All waiting output goes in one write, and one read takes all available input.
pub(super) struct Wire {
    stream: Box<dyn Stream>,
    /// The output to send next.
    pub(super) output: Vec<u8>,
    input: Vec<u8>,
    /// How much of the input was taken.
    read: usize,
}

/// Large enough for an answer of any peer, so that one read is enough.
const READ_BYTES: usize = 512;

impl Wire {
    pub(super) async fn open(address: &Address) -> io::Result<Self> {
        let stream = open(address).await?;
        Ok(Self { stream, output: Vec::new(), input: Vec::with_capacity(READ_BYTES), read: 0 })
    }

    pub(super) async fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }

    /// Returns the input that was not taken yet.
    pub(super) fn peek(&self) -> &[u8] {
        &self.input[self.read..]
    }

    pub(super) fn take(&mut self, bytes: usize) {
        self.read += bytes;
        if self.read == self.input.len() {
            self.input.clear();
            self.read = 0;
        }
    }

    /// Waits for more input.
    pub(super) async fn receive(&mut self) -> io::Result<()> {
        if self.stream.read_buf(&mut self.input).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
