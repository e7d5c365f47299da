//! Calls to etcd, one member at a time, each with a time limit and never repeated by itself.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{
    Certificate, Client, ConnectOptions, GetOptions, GetResponse, Identity, ResponseHeader,
    TlsOptions, Txn, TxnResponse, WatchOptions, WatchStream,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::address::{Address, TlsFiles};
use crate::error::Error;

/// Many sessions can be in one answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The members of etcd, and the one that is asked now.
pub(crate) struct Store {
    /// Each with its connection. A connection that failed is made anew.
    members: Vec<(String, Mutex<Option<Client>>)>,
    address: Address,
    tls: TlsFiles,
    current: AtomicUsize,
    call_max: Duration,
    /// etcd's own id, as answers to writes have it; 0 before the first.
    cluster: AtomicU64,
    /// The largest revision of all answers to writes.
    revision: AtomicI64,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("members", &self.names()).finish_non_exhaustive()
    }
}

impl Store {
    /// Prepares to call; nothing is sent yet. A certificate that cannot be read is an error.
    pub(crate) fn new(
        address: &Address,
        tls: &TlsFiles,
        call_max: Duration,
    ) -> Result<Self, Error> {
        let members = address.urls().into_iter().map(|url| (url, Mutex::default())).collect();
        let store = Self {
            members,
            address: address.clone(),
            tls: tls.clone(),
            current: AtomicUsize::new(0),
            call_max,
            cluster: AtomicU64::new(0),
            revision: AtomicI64::new(0),
        };
        store.options().map(|_| store)
    }

    /// Reads the certificates each time, because they may have been replaced.
    fn options(&self) -> Result<ConnectOptions, Error> {
        let call_max = self.call_max;
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(call_max)
            .with_keep_alive(call_max, call_max)
            .with_keep_alive_while_idle(true);
        if let Some((user, password)) = &self.address.user {
            options = options.with_user(user, password);
        }
        if self.address.is_encrypted {
            options = options.with_tls(tls_options(&self.tls)?);
        }
        Ok(options)
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|(url, _)| url.as_str()).collect();
        names.join(",")
    }

    /// The client of a member.
    async fn client(&self, member: usize) -> Result<Client, Error> {
        let (url, client) = &self.members[member];
        let mut client = client.lock().await;
        if let Some(client) = &*client {
            return Ok(client.clone());
        }
        let connected = Client::connect([url], Some(self.options()?)).await;
        let connected = connected.map_err(|error| Error::of(&error, url))?;
        Ok(client.insert(connected).clone())
    }

    /// One call to the present member. After a failure the next call goes to the next member, and
    /// the failed one gets a new connection: its certificates or the user's token may be outdated.
    async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, Error> {
        let current = self.current.load(Ordering::Relaxed);
        let member = current % self.members.len();
        let attempt = async {
            let client = self.client(member).await?;
            call(client).await.map_err(|error| Error::of(&error, &self.names()))
        };
        let result = timeout(self.call_max, attempt).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {:?}", self.call_max);
            Err(Error::Unreachable { members: self.names(), reason })
        });
        if let Err(error) = &result
            && error.may_be_the_members()
        {
            let next = current.wrapping_add(1);
            let relaxed = Ordering::Relaxed;
            let is_first = self.current.compare_exchange(current, next, relaxed, relaxed);
            // A locked client is being made anew already.
            if is_first.is_ok()
                && let Ok(mut client) = self.members[member].1.try_lock()
            {
                *client = None;
            }
        }
        result
    }

    /// A transaction. After an error its outcome is unknown.
    pub(crate) async fn transact(&self, transaction: Txn) -> Result<TxnResponse, Error> {
        let before = self.revision();
        let answer = self
            .call(async |client: Client| {
                let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
                { kv }.txn(transaction).await
            })
            .await?;
        self.check(answer.header(), before)?;
        Ok(answer)
    }

    pub(crate) async fn get(&self, key: &str, options: GetOptions) -> Result<GetResponse, Error> {
        self.call(async |client: Client| {
            let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
            { kv }.get(key, Some(options)).await
        })
        .await
    }

    /// Lets etcd forget the history before a revision.
    pub(crate) async fn compact(&self, revision: i64) -> Result<(), Error> {
        self.call(async |mut client: Client| client.compact(revision, None).await).await.map(|_| ())
    }

    /// Tries every member, for a question that may be asked twice.
    pub(crate) async fn ask_each<T>(
        &self,
        question: impl AsyncFn(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, Error> {
        let mut last = None;
        for _ in &self.members {
            match self.call(&question).await {
                Err(error) if error.may_be_the_members() => last = Some(error),
                result => return result,
            }
        }
        Err(last.unwrap_or_else(|| Error::Unknown("there is no member".to_owned())))
    }

    /// Watches keys from a revision on, or from now on.
    pub(crate) async fn watch(
        &self,
        prefix: &str,
        from: Option<i64>,
    ) -> Result<WatchStream, Error> {
        let mut options = WatchOptions::new().with_prefix();
        if let Some(from) = from {
            options = options.with_start_revision(from);
        }
        self.call(async |mut client: Client| client.watch(prefix, Some(options)).await).await
    }

    /// etcd's id; 0 before the first answer to a write.
    pub(crate) fn cluster(&self) -> u64 {
        self.cluster.load(Ordering::Relaxed)
    }

    /// The largest revision that was seen; 0 before the first answer to a write.
    pub(crate) fn revision(&self) -> i64 {
        self.revision.load(Ordering::Relaxed)
    }

    /// Refuses an answer of an etcd that was restored from a backup. Its id is another one, or its
    /// revision is below one that was known `before` the question was sent.
    fn check(&self, header: Option<&ResponseHeader>, before: i64) -> Result<(), Error> {
        let Some(header) = header else { return Ok(()) };
        let cluster = self.cluster.swap(header.cluster_id(), Ordering::Relaxed);
        self.revision.fetch_max(header.revision(), Ordering::Relaxed);
        if (cluster != 0 && cluster != header.cluster_id()) || header.revision() < before {
            return Err(Error::Restored);
        }
        Ok(())
    }
}

fn tls_options(files: &TlsFiles) -> Result<TlsOptions, Error> {
    let read = |path: &std::path::Path| {
        std::fs::read(path).map_err(|error| Error::Tls(format!("{}: {error}", path.display())))
    };
    let mut options = TlsOptions::new();
    options = match &files.authorities {
        Some(path) => options.ca_certificate(Certificate::from_pem(read(path)?)),
        None => options.with_native_roots(),
    };
    if let Some((certificate, key)) = &files.identity {
        options = options.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(options)
}
