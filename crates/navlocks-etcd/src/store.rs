//! Calls to etcd, one member at a time, each with a time limit and never repeated by itself.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use etcd_client::{
    Certificate, Client, ConnectOptions, GetOptions, GetResponse, Identity, ResponseHeader,
    TlsOptions, Txn, TxnResponse, WatchOptions, WatchStream,
};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use crate::address::{Address, TlsFiles};
use crate::error::Error;

/// Many sessions can be in one answer.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// The members of etcd, and the one that is asked now.
pub(crate) struct Store {
    members: Vec<(String, OnceCell<Client>)>,
    options: ConnectOptions,
    current: AtomicUsize,
    call_max: Duration,
    /// etcd's own id, as answers to writes have it; 0 before the first.
    cluster: AtomicU64,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("members", &self.names()).finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(
        address: &Address,
        tls: &TlsFiles,
        call_max: Duration,
    ) -> Result<Self, Error> {
        let mut options = ConnectOptions::new()
            .with_require_leader(true)
            .with_connect_timeout(call_max)
            .with_keep_alive(call_max, call_max)
            .with_keep_alive_while_idle(true);
        if let Some((user, password)) = &address.user {
            options = options.with_user(user, password);
        }
        if address.is_encrypted {
            options = options.with_tls(tls_options(tls)?);
        }
        let members = address.urls().into_iter().map(|url| (url, OnceCell::new())).collect();
        Ok(Self {
            members,
            options,
            current: AtomicUsize::new(0),
            call_max,
            cluster: AtomicU64::new(0),
        })
    }

    fn names(&self) -> String {
        let names: Vec<&str> = self.members.iter().map(|(url, _)| url.as_str()).collect();
        names.join(",")
    }

    /// The client of the member that is asked now.
    async fn client(&self) -> Result<Client, Error> {
        let (url, cell) = &self.members[self.current.load(Ordering::Relaxed) % self.members.len()];
        let connect = || Client::connect([url], Some(self.options.clone()));
        cell.get_or_try_init(connect).await.cloned().map_err(|error| Error::of(&error, url))
    }

    /// One call to the present member. After a failure the next call goes to the next member.
    async fn call<T>(
        &self,
        call: impl AsyncFnOnce(Client) -> Result<T, etcd_client::Error>,
    ) -> Result<T, Error> {
        let attempt = async {
            let client = self.client().await?;
            call(client).await.map_err(|error| Error::of(&error, &self.names()))
        };
        let result = timeout(self.call_max, attempt).await.unwrap_or_else(|_| {
            let reason = format!("no answer within {:?}", self.call_max);
            Err(Error::Unreachable { members: self.names(), reason })
        });
        if let Err(error) = &result
            && error.may_be_the_members()
        {
            self.current.fetch_add(1, Ordering::Relaxed);
        }
        result
    }

    /// A transaction. After an error its outcome is unknown.
    pub(crate) async fn transact(&self, transaction: Txn) -> Result<TxnResponse, Error> {
        let answer = self
            .call(async |client: Client| {
                let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
                { kv }.txn(transaction).await
            })
            .await?;
        self.check(answer.header())?;
        Ok(answer)
    }

    pub(crate) async fn get(&self, key: &str, options: GetOptions) -> Result<GetResponse, Error> {
        self.call(async |client: Client| {
            let kv = client.kv_client().max_decoding_message_size(ANSWER_BYTES_MAX);
            { kv }.get(key, Some(options)).await
        })
        .await
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

    pub(crate) async fn watch(&self, prefix: &str) -> Result<WatchStream, Error> {
        let options = WatchOptions::new().with_prefix();
        self.call(async |mut client: Client| client.watch(prefix, Some(options)).await).await
    }

    /// etcd's id; 0 before the first answer to a write.
    pub(crate) fn cluster(&self) -> u64 {
        self.cluster.load(Ordering::Relaxed)
    }

    /// Another id means that etcd was restored from a backup.
    fn check(&self, header: Option<&ResponseHeader>) -> Result<(), Error> {
        let Some(header) = header else { return Ok(()) };
        let before = self.cluster.swap(header.cluster_id(), Ordering::Relaxed);
        if before != 0 && before != header.cluster_id() {
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
