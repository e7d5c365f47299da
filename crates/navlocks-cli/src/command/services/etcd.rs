//! How a command reaches the etcd of a cluster.

use std::path::PathBuf;

use clap::Args;

use crate::exit::{Exit, Failure};

#[derive(Debug, Default, Args)]
pub(crate) struct EtcdOptions {
    /// The etcd that keeps the cluster, such as etcd://h1:2379,h2:2379,h3:2379; etcds:// for TLS,
    /// and a path for a prefix other than /navlocks/
    #[arg(
        long,
        global = true,
        value_name = "ADDRESS",
        env = "NAVLOCKS_CLUSTER",
        hide_env_values = true
    )]
    pub(crate) cluster: Option<String>,
    /// The user that etcd knows
    #[arg(long, global = true, value_name = "NAME", requires = "etcd_password_file")]
    etcd_user: Option<String>,
    /// A file with the user's password
    #[arg(long, global = true, value_name = "FILE", requires = "etcd_user")]
    etcd_password_file: Option<PathBuf>,
    /// Certificates of authorities to trust for etcds://, in PEM [default: those of the system]
    #[arg(long, global = true, value_name = "FILE")]
    etcd_ca_file: Option<PathBuf>,
    /// The certificate to show to etcd, in PEM
    #[arg(long, global = true, value_name = "FILE", requires = "etcd_key")]
    etcd_cert: Option<PathBuf>,
    /// The private key of that certificate, in PEM
    #[arg(long, global = true, value_name = "FILE", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
}

#[cfg(feature = "etcd")]
impl EtcdOptions {
    /// Returns the address of etcd, and the files for encrypted connections.
    pub(crate) fn address(
        &self,
    ) -> Result<(navlocks_etcd::Address, navlocks_etcd::TlsFiles), Failure> {
        let Some(text) = &self.cluster else {
            let text =
                "which cluster? name its etcd with --cluster etcd://host:2379 or NAVLOCKS_CLUSTER";
            return Err(Failure::new(Exit::Usage, text));
        };
        let mut address = navlocks_etcd::Address::parse(text).map_err(|error| failure(&error))?;
        if let (Some(user), Some(file)) = (&self.etcd_user, &self.etcd_password_file) {
            let password = navlocks_server::read_secret(file)
                .map_err(|error| Failure::new(Exit::Usage, error.to_string()))?;
            address.user = Some((user.clone(), password.trim_end().to_owned()));
        }
        let identity = self.etcd_cert.clone().zip(self.etcd_key.clone());
        let authorities = self.etcd_ca_file.clone();
        Ok((address, navlocks_etcd::TlsFiles { authorities, identity }))
    }
}

/// Returns how a failure between this command and etcd ends the command.
#[cfg(feature = "etcd")]
pub(crate) fn failure(error: &navlocks_etcd::Error) -> Failure {
    use navlocks_etcd::Error;
    let exit = match error {
        Error::Address(_)
        | Error::Tls(_)
        | Error::Timing { .. }
        | Error::NoSuchNode(_)
        | Error::NoCluster => Exit::Usage,
        Error::Credentials(_) | Error::NotPermitted(_) => Exit::Refused,
        Error::Unreachable { .. } | Error::NoQuorum(_) => Exit::Unavailable,
        _ => Exit::NoStart,
    };
    Failure::new(exit, error.to_string())
}

/// Says how to get a command that knows etcd.
#[cfg(not(feature = "etcd"))]
pub(crate) fn missing() -> Failure {
    let text = "this navlocks was built without clusters: build it with protoc and `cargo install --path crates/navlocks-cli --features etcd`";
    Failure::new(Exit::Usage, text)
}
