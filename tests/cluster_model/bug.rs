//! Bugs that are seeded into the protocol, to show that the checker finds them.

use crate::scenario::Scenario;

/// A rule of the protocol that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An owner serves until the whole node lease is over, instead of seven eighths.
    BeliefOfEightEighths,
    /// A node that was stopped continues to serve without reading the clock.
    BeliefIgnored,
    /// An owner waits for half of the session lease only.
    GraceCutShort,
    /// The victim's claim is accepted although a steal was recorded.
    ClaimAfterSteal,
    /// A client claims a steal whose answer is lost.
    StealClaimed,
    /// Claims take their seats in the order of arrival.
    ClaimsJudgedFirstCome,
    /// A client takes messages of an epoch older than its claim.
    EpochIgnoredByClient,
    /// A session is written to the registry after its welcome was sent.
    SessionRegisteredAfterWelcome,
    /// A lapsed session stays in the registry, and its client claims locks that it has given up.
    EndNotRecorded,
    /// Sessions that missed the grace stay in the registry, and their clients claim likewise.
    GraceEndNotRecorded,
    /// An owner gives tokens beyond its reservation.
    TokensNotReserved,
    /// A node takes a slot although the owner's key has changed since it read it.
    TakeoverComparesNothing,
    /// The owner gives its slot away and continues to serve.
    HandOverWithoutStop,
    /// A request with if-available is answered from an engine that is not rebuilt yet.
    IfAvailableAnsweredInGrace,
    /// A claim is taken after the end of grace.
    ClaimAfterGrace,
    /// A node raises the floor of epochs for a peer that has proven nothing.
    StrangersEpochBelieved,
}

impl Bug {
    /// Each bug with a scenario that shows it, and the rule that it breaks first.
    pub(crate) fn all() -> Vec<(Self, Scenario, &'static str)> {
        let two_holders = "two clients believe that they hold the lock";
        let late = "an owner sent a message after its successor had won";
        let stale = "a claim was accepted after another grant";
        let pinging = Scenario::queueing().pinging();
        let long = Scenario { session_lease: 4, ..Scenario::queueing() };
        vec![
            (Self::BeliefOfEightEighths, pinging.clone(), late),
            (Self::BeliefIgnored, pinging, late),
            (Self::GraceCutShort, long, two_holders),
            (Self::ClaimAfterSteal, Scenario::stealing(), stale),
            (Self::StealClaimed, Scenario::stealing(), "a steal was repeated"),
            (Self::ClaimsJudgedFirstCome, Scenario::queueing(), "a waiter was overtaken"),
            (Self::EpochIgnoredByClient, Scenario::queueing(), two_holders),
            (Self::SessionRegisteredAfterWelcome, Scenario::beginning(), two_holders),
            (Self::EndNotRecorded, Scenario::queueing(), stale),
            (Self::GraceEndNotRecorded, Scenario::twice(), stale),
            (Self::TokensNotReserved, Scenario::queueing(), "a token did not grow"),
            (Self::TakeoverComparesNothing, Scenario::queueing(), late),
            (Self::HandOverWithoutStop, Scenario::handing_over(), late),
            (Self::IfAvailableAnsweredInGrace, Scenario::if_available(), two_holders),
            (Self::StrangersEpochBelieved, Scenario::queueing(), "an epoch did not grow"),
            (Self::ClaimAfterGrace, Scenario::queueing(), "two claims of held locks conflict"),
        ]
    }
}
