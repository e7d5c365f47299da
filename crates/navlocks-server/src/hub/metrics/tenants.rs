//! The use of the service by tenants, for operators and for a tenant itself.

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::hub::shares::{Share, Shares};

/// So many tenants have numbers of their own, those with the most requests. The others are one.
const TENANTS_MAX: usize = 20;

/// The name of all other tenants together. No tenant of a token file has it alone, because
/// `transport` is empty here.
const OTHERS: &str = "other";

type Labels = [(&'static str, String); 2];

/// The numbers of all tenants, or of one.
pub(super) fn registry(shares: &Shares, only: Option<&str>) -> Registry {
    let mut registry = Registry::with_prefix("navlocks_tenant");
    let all = Counts::register(&mut registry);
    let mut tenants: Vec<(&str, &str, &Share)> =
        shares.all().filter(|(transport, name, _)| is_wanted(only, transport, name)).collect();
    tenants.sort_by_key(|&(transport, name, share)| {
        (std::cmp::Reverse(share.requests.get()), transport, name)
    });
    for (place, (transport, name, share)) in tenants.into_iter().enumerate() {
        let (transport, name) = if place < TENANTS_MAX { (transport, name) } else { ("", OTHERS) };
        all.add([("tenant", name.to_owned()), ("transport", transport.to_owned())], share);
    }
    registry
}

/// The Unix socket has no tenant, so no token shows its numbers.
fn is_wanted(only: Option<&str>, transport: &str, name: &str) -> bool {
    only.is_none_or(|tenant| tenant == name && transport == "tcp")
}

/// The numbers of each tenant.
struct Counts {
    connections: Family<Labels, Gauge>,
    sessions: Family<Labels, Gauge>,
    partitions: Family<Labels, Gauge>,
    requests: Family<Labels, Gauge>,
    memory: Family<Labels, Gauge>,
    unread: Family<Labels, Gauge>,
}

impl Counts {
    fn register(registry: &mut Registry) -> Self {
        let mut family = |name, text, unit| {
            let family = Family::<Labels, Gauge>::default();
            match unit {
                Some(unit) => registry.register_with_unit(name, text, unit, family.clone()),
                None => registry.register(name, text, family.clone()),
            }
            family
        };
        Self {
            connections: family("connections", "Connections of a tenant", None),
            sessions: family("sessions", "Sessions of a tenant", None),
            partitions: family("partitions", "Partitions that a tenant has open", None),
            requests: family("requests", "Requests of a tenant, held and pending", None),
            memory: family(
                "memory",
                "Memory that sessions, clients and requests of a tenant take",
                Some(Unit::Bytes),
            ),
            unread: family(
                "unread",
                "What connections of a tenant have not read",
                Some(Unit::Bytes),
            ),
        }
    }

    fn add(&self, labels: Labels, share: &Share) {
        for (family, number) in [
            (&self.connections, &share.connections),
            (&self.sessions, &share.sessions),
            (&self.partitions, &share.partitions),
            (&self.requests, &share.requests),
            (&self.memory, &share.bytes),
            (&self.unread, &share.unread),
        ] {
            family.get_or_create(&labels).inc_by(number.get() as i64);
        }
    }
}
