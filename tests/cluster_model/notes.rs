//! Situations that a run must have reached at least once, so that every rule is really checked.
//!
//! They are kept beside the states and not in them: a history would multiply the states.

use std::sync::atomic::{AtomicU32, Ordering};

/// A situation worth reaching: most are edge conditions of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Note {
    HeldClaimAccepted,
    WaitingClaimSeated,
    ClaimRefusedAfterGrace,
    ClaimRefusedAfterLapse,
    VictimsClaimRefused,
    StealInDoubtNotClaimed,
    OldMessageIgnoredAfterClaim,
    OwnerWithoutBeliefKeepsSilent,
    DeposedOwnersRenewalFails,
    GraceEndsWhenAllClaimed,
    GraceEndsWithLeases,
    OwnerReplacedDuringGrace,
    IdleSessionClaimsNothing,
    ReleaseLostWithOwner,
    ReleaseWaitsBehindClaim,
    IfAvailableWaitsForGrace,
    SharedAndExclusiveClaimsMeet,
    ScopeClaimedWhole,
    TwoWaitersClaim,
    NodeFindsItsOwnKey,
    SlotGivenAway,
    TokensReservedAgain,
    LeaseLapses,
    StrangersEpochIgnored,
}

impl Note {
    pub(crate) const ALL: [Self; 24] = [
        Self::HeldClaimAccepted,
        Self::WaitingClaimSeated,
        Self::ClaimRefusedAfterGrace,
        Self::ClaimRefusedAfterLapse,
        Self::VictimsClaimRefused,
        Self::StealInDoubtNotClaimed,
        Self::OldMessageIgnoredAfterClaim,
        Self::OwnerWithoutBeliefKeepsSilent,
        Self::DeposedOwnersRenewalFails,
        Self::GraceEndsWhenAllClaimed,
        Self::GraceEndsWithLeases,
        Self::OwnerReplacedDuringGrace,
        Self::IdleSessionClaimsNothing,
        Self::ReleaseLostWithOwner,
        Self::ReleaseWaitsBehindClaim,
        Self::IfAvailableWaitsForGrace,
        Self::SharedAndExclusiveClaimsMeet,
        Self::ScopeClaimedWhole,
        Self::TwoWaitersClaim,
        Self::NodeFindsItsOwnKey,
        Self::SlotGivenAway,
        Self::TokensReservedAgain,
        Self::LeaseLapses,
        Self::StrangersEpochIgnored,
    ];
}

/// The situations that were reached.
#[derive(Debug, Default)]
pub(crate) struct Notes(AtomicU32);

impl Notes {
    pub(crate) fn take(&self, note: Note) {
        self.0.fetch_or(1 << note as u32, Ordering::Relaxed);
    }

    pub(crate) fn has(&self, note: Note) -> bool {
        self.0.load(Ordering::Relaxed) & (1 << note as u32) != 0
    }
}
