//! The mailboxes, as the sink of the host.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::SystemTime;

use navlocks_core::Name;
use navlocks_core::kit::{About, Address, Group, HostSink, Member, Notice};

use crate::inbox::{Event, Inbox};
use crate::mail::{self, Mail, News, Post};

/// How the owner of a mailbox learns that there is mail.
pub trait Wake {
    /// Wakes the owner, which then takes its mail. Called from any thread, after unlocking, and not
    /// again before the mail is taken.
    fn wake(&self);

    /// Returns the time for "since when", in milliseconds since 1970.
    #[inline]
    fn now() -> u64 {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since.map_or(0, |since| since.as_millis() as u64)
    }
}

pub(crate) struct Mailboxes<W> {
    /// By [`Group::slot`].
    boxes: Vec<Option<Mailbox<W>>>,
    /// By [`Member::slot`].
    clients: Vec<Option<Client>>,
    /// The clients that have an inbox for events.
    subscribers: Vec<Member>,
    /// The mailbox of this input. Its owner takes its mail itself, without being woken.
    pub(crate) caller: Option<Group>,
    /// The wakers to call after unlocking. Empty between inputs.
    pub(crate) wakers: Vec<Arc<W>>,
}

struct Mailbox<W> {
    /// The clients that were opened with it.
    members: Vec<Member>,
    letters: VecDeque<Mail>,
    /// True if the owner was woken and has not taken its mail since.
    woken: bool,
    /// True if the owner takes its mail soon by itself, so that it need not be woken.
    polls: bool,
    waker: Arc<W>,
}

struct Client {
    member: Member,
    mailbox: Group,
    partition: Name,
    /// The client's name in queries.
    name: Name,
    inbox: Option<Inbox>,
}

impl<W> Default for Mailboxes<W> {
    fn default() -> Self {
        let (boxes, clients, subscribers) = (Vec::new(), Vec::new(), Vec::new());
        Self { boxes, clients, subscribers, caller: None, wakers: Vec::new() }
    }
}

impl<W: Wake> Mailboxes<W> {
    pub(crate) fn add(&mut self, group: Group, waker: W) {
        let (members, letters) = (Vec::new(), VecDeque::new());
        let waker = Arc::new(waker);
        let mailbox = Mailbox { members, letters, woken: false, polls: false, waker };
        set(&mut self.boxes, group.slot(), Some(mailbox));
    }

    pub(crate) fn remove(&mut self, group: Group) {
        for member in self.members_of(group) {
            set(&mut self.clients, member.slot(), None);
        }
        set(&mut self.boxes, group.slot(), None);
    }

    pub(crate) fn add_client(
        &mut self,
        member: Member,
        mailbox: Group,
        partition: Name,
        name: Name,
    ) {
        if let Some(Some(mailbox)) = self.boxes.get_mut(mailbox.slot()) {
            mailbox.members.push(member);
        }
        let client = Client { member, mailbox, partition, name, inbox: None };
        set(&mut self.clients, member.slot(), Some(client));
    }

    pub(crate) fn remove_client(&mut self, member: Member) {
        let Some(group) = self.mailbox_of(member) else { return };
        if let Some(Some(mailbox)) = self.boxes.get_mut(group.slot()) {
            mailbox.members.retain(|&other| other != member);
        }
        set(&mut self.clients, member.slot(), None);
    }

    /// Returns the clients that were opened with a mailbox.
    pub(crate) fn members_of(&self, mailbox: Group) -> Vec<Member> {
        let mailbox = self.boxes.get(mailbox.slot()).and_then(Option::as_ref);
        mailbox.map(|mailbox| mailbox.members.clone()).unwrap_or_default()
    }

    #[inline]
    fn client(&mut self, member: Member) -> Option<&mut Client> {
        self.clients.get_mut(member.slot())?.as_mut().filter(|client| client.member == member)
    }

    pub(crate) fn name(&self, member: Member) -> Option<&Name> {
        let client = self.clients.get(member.slot())?.as_ref()?;
        (client.member == member).then_some(&client.name)
    }

    #[inline]
    pub(crate) fn mailbox_of(&self, member: Member) -> Option<Group> {
        let client = self.clients.get(member.slot())?.as_ref()?;
        (client.member == member).then_some(client.mailbox)
    }

    pub(crate) fn inbox(&mut self, member: Member) -> Option<&mut Inbox> {
        self.client(member)?.inbox.as_mut()
    }

    /// Makes an inbox for a client that has none. Returns false when it is not known.
    pub(crate) fn subscribe(&mut self, member: Member, capacity: usize) -> bool {
        let Some(client) = self.client(member) else { return false };
        client.inbox = Some(Inbox::new(capacity));
        self.subscribers.push(member);
        true
    }

    /// Drops the inbox of a client. Returns true if it was the last one of its partition.
    pub(crate) fn unsubscribe(&mut self, member: Member) -> bool {
        let Some(client) = self.client(member) else { return false };
        if client.inbox.take().is_none() {
            return false;
        }
        let partition = client.partition.clone();
        self.subscribers.retain(|&subscriber| subscriber != member);
        let rest = self.subscribers.iter().filter_map(|other| self.clients[other.slot()].as_ref());
        !rest.map(|other| &other.partition).any(|other| *other == partition)
    }

    pub(crate) fn letter_count(&self) -> usize {
        self.boxes.iter().flatten().map(|mailbox| mailbox.letters.len()).sum()
    }

    /// Notes that the owner takes its mail now, so that it may be woken again unless it polls.
    pub(crate) fn visit(&mut self, mailbox: Group, polls: bool) {
        if let Some(Some(mailbox)) = self.boxes.get_mut(mailbox.slot()) {
            mailbox.woken = false;
            mailbox.polls = polls;
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, mailbox: Group, post: &mut impl Post) {
        if let Some(Some(mailbox)) = self.boxes.get_mut(mailbox.slot()) {
            mail::empty(&mut mailbox.letters, post);
        }
    }

    /// Puts mail into the mailbox of a client, and marks its owner to be woken unless it polls.
    #[inline]
    fn send(&mut self, member: Member, number: u64, news: News) {
        let Some(group) = self.mailbox_of(member) else { return };
        let Some(Some(mailbox)) = self.boxes.get_mut(group.slot()) else { return };
        mailbox.letters.push_back(Mail { member, number, news });
        if !mailbox.woken && !mailbox.polls && self.caller != Some(group) {
            mailbox.woken = true;
            self.wakers.push(mailbox.waker.clone());
        }
    }
}

impl<W: Wake> HostSink<u64, Name> for Mailboxes<W> {
    #[inline]
    fn now(&self) -> u64 {
        W::now()
    }

    #[inline]
    fn notify(&mut self, to: Address, notice: &Notice<'_, u64>) {
        if let Some(news) = News::mailed(notice) {
            self.send(to.member, to.number, news);
        }
    }

    fn publish(&mut self, address: Address, about: &About<Name>, notice: &Notice<'_, u64>) {
        let Some(news) = News::published(notice) else { return };
        let Some(client) = self.client(address.member) else { return };
        let (name, partition) = (client.name.clone(), client.partition.clone());
        let event = Arc::new(Event { address, about: about.clone(), client: name, news });
        for index in 0..self.subscribers.len() {
            let member = self.subscribers[index];
            let subscriber = self.client(member).filter(|client| client.partition == partition);
            let inbox = subscriber.and_then(|client| client.inbox.as_mut());
            if inbox.is_some_and(|inbox| inbox.push(event.clone())) {
                self.send(member, 0, News::Events);
            }
        }
    }
}

fn set<T>(slots: &mut Vec<Option<T>>, slot: usize, value: Option<T>) {
    if slot >= slots.len() {
        slots.resize_with(slot + 1, || None);
    }
    slots[slot] = value;
}
