//! A node that cannot join is told why, and one that has joined follows new passwords and keys.

use std::path::Path;
use std::process::Command;

use navlocks_etcd::{Change, Registry as _};

use super::*;

async fn refusal(config: Config) -> Error {
    match timeout(PATIENCE, Node::join(config)).await.expect("an answer in time") {
        Ok(_) => panic!("the node has joined"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn absent_etcd_is_unreachable() {
    let nowhere = Address::parse("etcd://127.0.0.1:1").unwrap();
    let error = refusal(Config::new(nowhere, "n1", "ws://n1")).await;
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
    assert!(error.to_string().contains("127.0.0.1:1"), "{error}");
}

#[tokio::test]
async fn node_with_other_constants_is_refused() {
    let etcd = etcd(1);
    let _first = Node::join(config(&etcd, "n1")).await.unwrap();
    let error = refusal(config(&etcd, "n2").with(|it| it.slots = 64)).await;
    let Error::OtherCluster { ours, theirs, .. } = &error else { panic!("{error:?}") };
    assert!(ours.contains("64 slots") && theirs.contains("8 slots"), "{error}");
}

#[tokio::test]
async fn prefix_with_strange_data_is_refused() {
    let etcd = etcd(1);
    client(&etcd).await.put("/navlocks/cluster", "mine", None).await.unwrap();
    let error = refusal(config(&etcd, "n1")).await;
    assert!(matches!(&error, Error::Record { key, .. } if key == "/navlocks/cluster"), "{error:?}");
}

/// Lets etcd ask for passwords, which root has.
async fn enable_passwords(etcd: &EtcdMembers) -> Config {
    let mut operator = client(etcd).await;
    operator.user_add("root", "secret", None).await.unwrap();
    operator.user_grant_role("root", "root").await.unwrap();
    operator.user_add("stranger", "word", None).await.unwrap();
    operator.auth_enable().await.unwrap();
    let mut config = config(etcd, "n1");
    config.address.user = Some(("root".to_owned(), "secret".to_owned()));
    config
}

#[tokio::test]
async fn node_with_a_user_goes_on_when_its_token_is_lost() {
    for count in [1, 3] {
        let mut etcd = etcd(count);
        let mut node = Node::join(enable_passwords(&etcd).await).await.unwrap();
        node.until_all_slots().await;
        // A member knows the tokens that it gave until it ends.
        for number in 0..count {
            etcd.kill(number);
            etcd.restart(number).unwrap();
            let (slot, _) = node.slots.get_mut(&0).unwrap();
            slot.write(Change::Begin(session(number as u128)));
            timeout(PATIENCE, slot.flushed()).await.unwrap().unwrap();
            node.renewals(2).await;
        }
    }
}

/// A member that is killed takes the connection with it. Here only the token is lost.
#[tokio::test]
async fn node_with_a_user_gets_a_new_token_when_its_connection_lasts() {
    let etcd = etcd(1);
    let mut node = Node::join(enable_passwords(&etcd).await).await.unwrap();
    node.until_all_slots().await;
    // A member forgets all tokens when passwords are switched off.
    for state in ["disable", "enable"] {
        etcd.etcdctl(&["--user", "root:secret", "auth", state]).unwrap();
    }
    node.slots[&0].0.write(Change::Begin(session(1)));
    timeout(PATIENCE, node.slots[&0].0.flushed()).await.unwrap().unwrap();
    node.renewals(2).await;
    assert!(node.lost.is_empty() && node.ended.is_none());
}

/// Makes a certificate for this machine, and its key.
fn make_certificate(certificate: &Path, key: &Path) {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    openssl.args(["-nodes", "-days", "60", "-subj", "/CN=localhost"]);
    openssl.args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let output = openssl.arg("-keyout").arg(key).arg("-out").arg(certificate).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn node_reads_the_authorities_of_etcd_again_when_its_connection_ends() {
    let folder = servers::Folder::new("certificates").unwrap();
    let (certificate, key) = (folder.path().join("etcd.pem"), folder.path().join("etcd.key"));
    make_certificate(&certificate, &key);
    let mut etcd = EtcdMembers::start_encrypted(&certificate, &key).unwrap();
    let mut config = config(&etcd, "n1");
    config.address.is_encrypted = true;
    config.tls.authorities = Some(certificate.clone());
    let mut node = Node::join(config).await.unwrap();
    node.until_all_slots().await;
    etcd.kill(0);
    make_certificate(&certificate, &key);
    etcd.restart(0).unwrap();
    node.slots[&0].0.write(Change::Begin(session(1)));
    timeout(PATIENCE, node.slots[&0].0.flushed()).await.unwrap().unwrap();
    node.renewals(2).await;
    assert!(node.lost.is_empty() && node.ended.is_none());
}

#[tokio::test]
async fn name_of_a_living_node_is_refused() {
    let etcd = etcd(1);
    let mut first = Node::join(config(&etcd, "n1")).await.unwrap();
    first.until_all_slots().await;
    let other = || "ws://other.example:7400".to_owned();
    let elsewhere = || config(&etcd, "n1").with(|it| it.advertise = other());
    let error = refusal(elsewhere()).await;
    let Error::Namesake { name, address } = &error else { panic!("{error:?}") };
    assert_eq!((name.as_str(), address.as_str()), ("n1", "ws://n1.example:7400"));
    first.renewals(2).await;
    assert!(first.lost.is_empty() && first.ended.is_none());
    let nodes = client(&etcd).await.get("/navlocks/nodes/", Some(all())).await.unwrap();
    assert_eq!(nodes.count(), 1);
    // A node that starts again elsewhere waits until its earlier run is silent.
    drop(first);
    Node::join(elsewhere()).await.unwrap().until_all_slots().await;
}

#[tokio::test]
async fn wrong_password_and_missing_role_are_told_apart() {
    let etcd = etcd(1);
    enable_passwords(&etcd).await;
    let with = |user: &str, password: &str| {
        let mut config = config(&etcd, "n1");
        config.address.user = Some((user.to_owned(), password.to_owned()));
        config
    };
    let error = refusal(with("root", "wrong")).await;
    assert!(matches!(error, Error::Credentials(_)), "{error:?}");
    let error = refusal(config(&etcd, "n1")).await;
    assert!(matches!(error, Error::Credentials(_)), "{error:?}");
    let error = refusal(with("stranger", "word")).await;
    assert!(matches!(error, Error::NotPermitted(_)), "{error:?}");
    let mut node = Node::join(with("root", "secret")).await.unwrap();
    node.until_all_slots().await;
}

#[tokio::test]
async fn leases_that_would_lose_every_lock_are_refused_with_the_numbers() {
    let config = Config::new(Address::parse("etcd://h").unwrap(), "n1", "ws://n1");
    let allowance = Duration::from_secs(2);
    config.check_timing(Duration::from_secs(12), allowance).unwrap();
    let error = config.check_timing(Duration::from_secs(11), allowance).unwrap_err().to_string();
    assert!(["11s", "5s", "2s"].iter().all(|number| error.contains(number)), "{error}");
}
