//! The user's verbs for requests, and their ends.

use navlocks_core::{FencingToken, Mode};
use navlocks_wire::{self as wire, Downgrade, Request, RequestKey, ToService, Watch};

use super::{Event, LinkState, Machine};
use crate::moment::Moment;
use crate::requests::{KnownRequest, Lapsed, LossCause, Over, Stage};

/// The outcome of a request at one moment.
#[derive(Debug)]
pub enum Outcome<'a, T> {
    /// It is pending, with these data of the driver.
    Pending(&'a mut T),
    /// It is granted. From here on its lock counts as held.
    Granted(FencingToken),
    /// It is over, and forgotten.
    Over(Over),
}

impl<T> Machine<T> {
    /// Requests a lock; the machine chooses the number. The service receives the request over the
    /// connection, or over the next one.
    ///
    /// # Errors
    ///
    /// The request cannot succeed. Nothing is sent.
    pub fn request(&mut self, mut request: Request, data: T, now: Moment) -> Result<u64, Over> {
        let number = self.next_request;
        self.check_client(request.client)?;
        request.id = number;
        let checked = self
            .session
            .check_request(&request)
            .and_then(|()| self.session.check_requests(self.living));
        let message = ToService::Request(request);
        let text = wire::write(&message);
        checked.and_then(|()| self.session.check_length(&text)).map_err(Over::refused)?;
        self.next_request += 1;
        let sent = self.link == LinkState::Up;
        if sent {
            self.send_text(text);
            self.keepalive.begin(now);
        }
        if let ToService::Request(request) = message {
            self.steals.add(&request);
            self.requests.insert(number, KnownRequest::new(request, sent, now, data));
            self.living += 1;
        }
        Ok(number)
    }

    /// Returns the outcome of a request, and takes it. Returns none if the request is unknown.
    pub fn outcome(&mut self, number: u64) -> Option<Outcome<'_, T>> {
        let is_over = matches!(self.requests.get(&number)?.stage, Stage::Over(_));
        if is_over {
            let stage = self.requests.remove(&number)?.stage;
            let Stage::Over(over) = stage else { return None };
            if matches!(&over, Over::Lost(loss) if *loss != LossCause::HeldTooLong) {
                self.send(&ToService::End(number));
            }
            return Some(Outcome::Over(over));
        }
        let request = self.requests.get_mut(&number)?;
        match request.stage {
            Stage::Granted(token) | Stage::Held(token) if !request.is_crossing => {
                request.stage = Stage::Held(token);
                Some(Outcome::Granted(token))
            }
            _ => Some(Outcome::Pending(&mut request.data)),
        }
    }

    /// Returns true if the request is pending.
    pub fn is_pending(&self, number: u64) -> bool {
        self.requests.get(&number).is_some_and(KnownRequest::is_pending)
    }

    /// Returns the data of a request.
    pub fn data(&mut self, number: u64) -> Option<&mut T> {
        self.requests.get_mut(&number).map(|request| &mut request.data)
    }

    /// Returns how a lock was lost, until it is released.
    pub fn loss(&self, number: u64) -> Option<&LossCause> {
        self.requests.get(&number)?.loss()
    }

    /// Aborts a request; if it was granted meanwhile, releases its lock.
    pub fn abort(&mut self, number: u64) -> Option<T> {
        let request = self.forget(number)?;
        self.send(&ToService::End(number));
        Some(request.data)
    }

    /// Aborts a pending request whose timeout is over. Returns none, and changes nothing, if the
    /// request is not pending.
    pub fn time_out(&mut self, number: u64) -> Option<T> {
        let request = self.is_pending(number).then(|| self.forget(number))??;
        self.send(&match self.session.takes_timeouts {
            true => ToService::TimedOut(number),
            false => ToService::End(number),
        });
        Some(request.data)
    }

    /// Releases a lock, or acknowledges its loss. Returns the loss, and the data of the driver.
    pub fn release(&mut self, number: u64) -> Option<(Option<LossCause>, T)> {
        let request = self.forget(number)?;
        let loss = request.loss().cloned().or_else(|| self.predicted_loss(&request));
        // The service has received the end of this one before.
        if loss != Some(LossCause::HeldTooLong) {
            self.send(&ToService::End(number));
        }
        Some((loss, request.data))
    }

    /// Gives a held lock a mode that allows more holders: [`Event::Downgraded`] follows. Returns
    /// false, and changes nothing, if the mode allows fewer.
    pub fn downgrade(&mut self, number: u64, mode: Mode) -> bool {
        let Some(request) = self.requests.get_mut(&number) else { return true };
        let is_held = matches!(request.stage, Stage::Held(_));
        let allowed = !is_held || request.downgrade(mode);
        if is_held && allowed {
            self.send(&ToService::Downgrade(Downgrade { id: number, mode }));
        }
        allowed
    }

    /// Returns true if the service has answered the downgrades of a lock, or the lock is over.
    pub fn is_downgraded(&self, number: u64) -> bool {
        self.requests.get(&number).is_none_or(|request| request.downgrade.is_none())
    }

    /// Watches a lock once: [`Event::Contended`] follows when a request waits for it.
    pub fn watch(&mut self, number: u64) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.is_watched = true;
            self.send(&ToService::Watch(Watch::Contention(number)));
        }
    }

    /// Ends the watch of a lock.
    pub fn unwatch(&mut self, number: u64) {
        if let Some(request) = self.requests.get_mut(&number) {
            request.is_watched = false;
        }
    }

    fn forget(&mut self, number: u64) -> Option<KnownRequest<T>> {
        let request = self.requests.remove(&number)?;
        self.living -= usize::from(request.is_alive());
        self.holds.end(request.until, number);
        if self.steals.remove(&request.request) {
            self.pass_crossing(number);
        }
        Some(request)
    }

    /// Passes on a grant, unless a pending steal of the same client takes the lock: the service
    /// granted this before it received the steal, so the loss may follow.
    pub(super) fn pass_grant(&mut self, number: u64) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let thief = self.steals.thief_of(&request.request);
        request.is_crossing = thief.is_some();
        match thief {
            Some(thief) => drop(self.crossing.insert((thief, number))),
            None => self.events.push_back(Event::Granted(number)),
        }
    }

    /// Passes on the grants that waited for the outcome of this steal.
    pub(super) fn pass_crossing(&mut self, steal: u64) {
        while let Some(&(thief, number)) = self.crossing.range((steal, 0)..).next()
            && thief == steal
        {
            self.crossing.remove(&(thief, number));
            if self.requests.get(&number).is_some_and(|it| it.is_crossing) {
                self.pass_grant(number);
            }
        }
    }

    /// Returns the loss of a lock that its client releases while a steal of the same client is
    /// pending: the service receives the steal before the release.
    fn predicted_loss(&self, released: &KnownRequest<T>) -> Option<LossCause> {
        let thief = self.steals.thief_of(&released.request)?;
        let thief = RequestKey::new(self.session.number(), thief);
        Some(LossCause::Taken { cause: wire::LossCause::Stolen(thief), thief: None })
    }

    /// Ends a request without a lock. A held lock is not affected.
    pub(super) fn end_pending(&mut self, number: u64, over: Over) {
        if self.is_pending(number) {
            self.end_request(number, over);
        }
    }

    pub(super) fn end_request(&mut self, number: u64, over: Over) {
        if let Some(request) = self.requests.get_mut(&number)
            && request.is_alive()
        {
            self.losses += u64::from(matches!(over, Over::Lost(_)));
            self.living -= 1;
            let was_steal = self.steals.remove(&request.request);
            self.holds.end(request.until, number);
            (request.downgrade, request.is_crossing) = (None, false);
            request.stage = Stage::Over(over);
            self.events.push_back(Event::Over(number));
            if was_steal {
                self.pass_crossing(number);
            }
        }
    }

    /// Ends all requests of a client here and now, before the service receives that.
    pub(super) fn end_requests_of(&mut self, client: Option<u64>) {
        let is_meant = |owner: u64| client.is_none_or(|client| client == owner);
        for number in self.alive() {
            if self.requests.get(&number).is_some_and(|known| is_meant(known.request.client)) {
                self.end_request(number, Over::Lost(LossCause::ClientEnded));
            }
        }
        let queries = self.queries.iter().filter(|(_, query)| is_meant(query.client()));
        self.events.extend(queries.map(|(&number, _)| Event::Answered(number)));
    }

    /// Ends the locks whose longest time is over, also without a connection: the service may grant
    /// them to other clients.
    pub(super) fn check_holds(&mut self, now: Moment) {
        while let Some(number) = self.holds.due(now) {
            self.end_request(number, Over::Lost(LossCause::HeldTooLong));
            self.send(&ToService::Expired(number));
        }
    }

    /// Ends the session of all requests.
    pub(super) fn lapse_requests(&mut self, loss: &LossCause) {
        self.holds.clear();
        self.crossing.clear();
        for number in self.alive() {
            match self.requests.get_mut(&number).map(KnownRequest::lapse) {
                Some(Lapsed::OutcomeUnknown) => self.end_request(number, Over::OutcomeUnknown),
                Some(Lapsed::Lost) => self.end_request(number, Over::Lost(loss.clone())),
                Some(Lapsed::Unchanged) | None => {}
            }
        }
    }

    /// Ends the steals that the earlier owner of a cluster's locks may have done: the new owner
    /// does not know, and would steal from a later holder.
    pub(super) fn end_steals_in_doubt(&mut self) {
        for number in self.alive() {
            if self.requests.get(&number).is_some_and(KnownRequest::is_steal_in_doubt) {
                self.end_request(number, Over::OutcomeUnknown);
            }
        }
    }

    /// Returns true if a request of this client is pending or held.
    pub fn has_requests(&self, client: u64) -> bool {
        let mut known = self.requests.values();
        known.any(|known| known.request.client == client && known.is_alive())
    }

    /// Returns the requests that are still wanted, in the order in which they were made.
    pub(super) fn alive(&self) -> Vec<u64> {
        let alive = self.requests.iter().filter(|(_, request)| request.is_alive());
        alive.map(|(&number, _)| number).collect()
    }

    pub(super) fn pending(&self) -> Vec<u64> {
        let pending = self.requests.iter().filter(|(_, request)| request.is_pending());
        pending.map(|(&number, _)| number).collect()
    }
}
