//! Access tokens: who may come in over TCP, and as whose tenant.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::header::{self, HeaderMap};
use navlocks_wire as wire;
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use super::explain;

/// A shorter token is too easy to guess.
const TOKEN_BYTES_MIN: usize = 16;

/// The tokens that clients over TCP need. Without tokens every client belongs to the tenant without
/// a name.
#[derive(Clone, Default)]
pub struct Access {
    tokens: Vec<Token>,
    /// The file that they come from, to read it again when it changes.
    file: Option<PathBuf>,
    /// The tokens of operators, each with the name of one.
    operators: Option<Box<Self>>,
    /// The tokens that read metrics and nothing else.
    scrapers: Option<Box<Self>>,
}

/// The metrics that a request may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All metrics of the service.
    Service,
    /// The numbers of one tenant.
    Tenant(String),
}

#[derive(Clone)]
struct Token {
    tenant: String,
    text: String,
    id: TokenId,
}

/// Which token a connection has shown. No other one ever has the same, not even after the file was
/// read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenId(u64);

impl TokenId {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Access {
    /// The tokens in a text: on each line `TENANT:TOKEN`, or a token alone for the tenant without a
    /// name. Empty lines and lines that begin with `#` mean nothing.
    ///
    /// # Errors
    ///
    /// There is no token, or one is too short. The error shows none.
    pub fn from_text(text: &str) -> io::Result<Self> {
        let bad = |text: String| Err(io::Error::new(io::ErrorKind::InvalidData, text));
        let mut tokens = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (tenant, token) = line.split_once(':').unwrap_or(("", line));
            if token.len() < TOKEN_BYTES_MIN {
                return bad(format!(
                    "the token in line {} is too short: it needs {TOKEN_BYTES_MIN} characters at least",
                    index + 1
                ));
            }
            let (tenant, text) = (tenant.to_owned(), token.to_owned());
            tokens.push(Token { tenant, text, id: TokenId::new() });
        }
        if tokens.is_empty() {
            return bad("there is no token: write one on a line, or TENANT:TOKEN".to_owned());
        }
        Ok(Self { tokens, file: None, operators: None, scrapers: None })
    }

    /// The tokens in a file, as in [`from_text`](Self::from_text).
    ///
    /// # Errors
    ///
    /// The file cannot be read, or what is in it.
    pub fn from_file(path: &Path) -> io::Result<Self> {
        let unusable = |error| explain(error, "cannot use the token file", path);
        let access = Self::from_text(&read_secret(path)?).map_err(unusable)?;
        Ok(Self { file: Some(path.to_owned()), ..access })
    }

    /// The same with tokens of operators, who see all tenants in a dashboard: on each line
    /// `NAME:TOKEN`.
    #[must_use]
    pub fn with_operators(self, operators: Self) -> Self {
        Self { operators: Some(Box::new(operators)), ..self }
    }

    /// The same with tokens that read metrics and nothing else: on each line one, or `NAME:TOKEN`.
    #[must_use]
    pub fn with_scrapers(self, scrapers: Self) -> Self {
        Self { scrapers: Some(Box::new(scrapers)), ..self }
    }

    /// Returns true if an operator has a token.
    pub(crate) fn has_operators(&self) -> bool {
        self.operators.is_some()
    }

    /// The files of the tokens.
    pub(crate) fn files(&self) -> Vec<&Path> {
        let others = [&self.operators, &self.scrapers].into_iter().flatten();
        let others = others.flat_map(|others| &others.file);
        self.file.iter().chain(others).map(PathBuf::as_path).collect()
    }

    /// Reads the file again. A token that was there before stays the same.
    pub(crate) fn read_again(&mut self) -> io::Result<()> {
        for others in [&mut self.operators, &mut self.scrapers].into_iter().flatten() {
            others.read_again()?;
        }
        let Some(file) = &self.file else { return Ok(()) };
        let mut later = Self::from_file(file)?;
        (later.operators, later.scrapers) = (self.operators.take(), self.scrapers.take());
        let known: HashMap<(&str, &str), TokenId> =
            self.tokens.iter().map(|it| ((&*it.tenant, &*it.text), it.id)).collect();
        for token in &mut later.tokens {
            if let Some(&id) = known.get(&(&*token.tenant, &*token.text)) {
                token.id = id;
            }
        }
        *self = later;
        Ok(())
    }

    /// Whether a connection that has shown this may stay.
    pub(crate) fn knows(&self, id: Option<TokenId>) -> bool {
        id.is_none_or(|id| self.ids().any(|known| known == id))
    }

    /// Returns all tokens, those of operators included.
    pub(crate) fn ids(&self) -> impl Iterator<Item = TokenId> {
        let operators = self.operators.iter().flat_map(|operators| &operators.tokens);
        self.tokens.iter().chain(operators).map(|token| token.id)
    }

    /// Returns true if no client needs a token.
    pub(crate) fn is_open(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The tenant that sent these headers, and its token; none when they have no token that is
    /// known.
    pub(crate) fn tenant(&self, headers: &HeaderMap) -> Option<(&str, Option<TokenId>)> {
        if self.is_open() {
            return Some(("", None));
        }
        self.find(headers)
    }

    /// Returns the name of the operator that sent these headers, and its token.
    pub(crate) fn operator(&self, headers: &HeaderMap) -> Option<(&str, Option<TokenId>)> {
        self.operators.as_ref()?.find(headers)
    }

    /// Returns what the sender of these headers may read of the metrics, if anything. The token of
    /// a tenant shows nothing of other tenants.
    pub(crate) fn metrics(&self, headers: &HeaderMap) -> Option<Scope> {
        let is_known = |known: &Option<Box<Self>>| {
            known.as_ref().is_some_and(|known| known.find(headers).is_some())
        };
        if is_known(&self.scrapers) || is_known(&self.operators) {
            return Some(Scope::Service);
        }
        if self.is_open() {
            return self.scrapers.is_none().then_some(Scope::Service);
        }
        let (tenant, _) = self.find(headers)?;
        let is_only = self.tokens.iter().all(|token| token.tenant == tenant);
        Some(if is_only { Scope::Service } else { Scope::Tenant(tenant.to_owned()) })
    }

    fn find(&self, headers: &HeaderMap) -> Option<(&str, Option<TokenId>)> {
        let shown = shown(headers)?;
        // All are compared, so that time does not tell which one came close.
        let mut found = u32::MAX;
        for (index, token) in self.tokens.iter().enumerate() {
            let same: Choice = token.text.as_bytes().ct_eq(&shown);
            found.conditional_assign(&(index as u32), same);
        }
        self.tokens.get(found as usize).map(|token| (token.tenant.as_str(), Some(token.id)))
    }
}

/// The text of a file with access tokens, which others must not be able to read.
///
/// # Errors
///
/// The file cannot be read, or is open to others.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let unusable = |error| explain(error, "cannot use the token file", path);
    let mut file = File::open(path).map_err(unusable)?;
    let mode = file.metadata().map_err(unusable)?.mode() & 0o777;
    if mode & 0o027 != 0 {
        let text = format!("others can use it (its mode is {mode:o}): close it with chmod 600");
        return Err(unusable(io::Error::new(io::ErrorKind::InvalidData, text)));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(unusable)?;
    Ok(text)
}

/// The token in a request: as `Authorization: Bearer …`, or from a browser as a subprotocol.
fn shown(headers: &HeaderMap) -> Option<Vec<u8>> {
    if let Some(line) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = line.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().as_bytes().to_vec());
    }
    let lines = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    let words = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(','));
    let encoded =
        words.map(str::trim).find_map(|word| word.strip_prefix(wire::TOKEN_SUBPROTOCOL))?;
    URL_SAFE_NO_PAD.decode(encoded).ok()
}

/// Shows how many there are, and none of them.
impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Access({} tokens)", self.tokens.len())
    }
}
