//! A PUB socket that has one thing to say: look again.

use std::sync::{Arc, Mutex, PoisonError};

use kernel::event::EventFd;

use super::Error;
use super::frame::Received;
use super::listener::Serve;
use super::socket::Socket;

/// Longest topic that somebody subscribes to.
const TOPIC: usize = 256;

/// Says it to all who subscribe. Who has not yet read what was said before hears it once.
#[derive(Debug, Clone)]
pub struct Publisher {
    message: &'static [u8],
    subscribers: Arc<Mutex<Vec<Arc<EventFd>>>>,
}

impl Publisher {
    /// One that says this.
    pub fn new(message: &'static [u8]) -> Self {
        Self {
            message,
            subscribers: Arc::default(),
        }
    }

    /// Says it. Waits for nobody.
    pub fn publish(&self) {
        let subscribers = self.subscribers.lock();
        let subscribers = subscribers.unwrap_or_else(PoisonError::into_inner);
        subscribers.iter().for_each(|wake| wake.signal());
    }

    fn enter(&self) -> Result<Place<'_>, Error> {
        let wake = Arc::new(EventFd::new()?);
        let mut all = self
            .subscribers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        all.push(wake.clone());
        Ok(Place {
            publisher: self,
            wake,
        })
    }
}

/// A subscriber's place, free again when this is dropped.
struct Place<'a> {
    publisher: &'a Publisher,
    wake: Arc<EventFd>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let all = self.publisher.subscribers.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        all.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
    }
}

/// Serves connections of SUB and XSUB sockets.
pub fn publisher(publisher: Publisher) -> Serve {
    Arc::new(move |socket| publish(socket, &publisher))
}

fn publish(mut socket: Socket, publisher: &Publisher) -> Result<(), Error> {
    socket.greet("PUB", &["SUB", "XSUB"])?;
    let place = publisher.enter()?;
    // Subscriptions whose topic the message begins with.
    let mut subscriptions = 0u32;
    loop {
        if socket.readable(Some(&place.wake), None)? {
            let until = socket.deadline();
            let (adds, topic) = match socket.receive(TOPIC, until)? {
                Received::Command(name, topic) => match &name[..] {
                    b"SUBSCRIBE" => (true, topic),
                    b"CANCEL" => (false, topic),
                    _ => {
                        socket.heed(&name, &topic)?;
                        continue;
                    }
                },
                Received::Message(frame) => match frame.body.split_first() {
                    Some((1, topic)) => (true, topic.to_vec()),
                    Some((0, topic)) => (false, topic.to_vec()),
                    _ => return Err(Error::Malformed("a subscriber only subscribes")),
                },
            };
            match (publisher.message.starts_with(&topic), adds) {
                (true, true) => subscriptions = subscriptions.saturating_add(1),
                (true, false) => subscriptions = subscriptions.saturating_sub(1),
                (false, _) => {}
            }
        } else {
            place.wake.clear();
            if subscriptions > 0 {
                let until = socket.deadline();
                socket.send(&[publisher.message], until)?;
            }
        }
    }
}
