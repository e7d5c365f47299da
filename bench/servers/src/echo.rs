//! The floor of every service: a server that sends each message back. It is this program, started
//! again.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

use super::folder::Folder;
use super::process::End;
use super::{Address, Program, Server};

/// The program of this server.
pub const PROGRAM: Program =
    Program { name: "echo", end: End::Terminate, account: || None, version, start };

/// The word that makes this program the server.
pub const WORD: &str = "echo-server";

fn version() -> Result<String, String> {
    Ok("bare echo".to_string())
}

fn start() -> Result<Server, String> {
    let problem = |error: io::Error| format!("echo: {error}");
    let folder = Folder::new("echo").map_err(problem)?;
    let tcp = Address::free_port().map_err(problem)?;
    let unix = folder.path().join("socket");
    let mut command = Command::new(std::env::current_exe().map_err(problem)?);
    command.arg(WORD).arg(&unix).arg(tcp.to_string());
    Server::start(PROGRAM, folder, &mut command, vec![Address::Unix(unix), Address::Tcp(tcp)])
}

/// Serves until it ends: the arguments are a path and an address.
pub fn serve(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let mut argument =
        || arguments.next().ok_or_else(|| io::Error::other("an argument is missing"));
    let unix = PathBuf::from(argument()?);
    let tcp = argument()?.to_string_lossy().parse::<SocketAddr>().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (unix, tcp) = (UnixListener::bind(unix)?, TcpListener::bind(tcp).await?);
        tokio::spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                if stream.set_nodelay(true).is_ok() {
                    tokio::spawn(echo(stream));
                }
            }
        });
        loop {
            tokio::spawn(echo(unix.accept().await?.0));
        }
    })
}

/// Echoes until the client closes.
async fn echo(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}
