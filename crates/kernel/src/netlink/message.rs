//! The shape of netlink messages: a walk over headers and attributes, and a builder.
//!
//! Numbers are in the byte order of the machine unless a name says otherwise.

/// Bytes of `struct nlmsghdr`: length, type, flags, sequence number, port.
pub const HEADER: usize = 16;
const KIND: usize = 4;
const FLAGS: usize = 6;
const SEQUENCE: usize = 8;

/// One message of a datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Message<'a> {
    /// nlmsg_type.
    pub kind: u16,
    /// nlmsg_flags.
    pub flags: u16,
    /// nlmsg_seq.
    pub sequence: u32,
    /// The bytes after the header.
    pub payload: &'a [u8],
}

/// The messages of a datagram; ends at the first that is cut off or malformed.
#[derive(Debug, Clone)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        let bytes = self.0;
        let length = u32_at(bytes, 0)? as usize;
        if length < HEADER || length > bytes.len() {
            return None;
        }
        self.0 = &bytes[align(length).min(bytes.len())..];
        Some(Message {
            kind: u16_at(bytes, KIND)?,
            flags: u16_at(bytes, FLAGS)?,
            sequence: u32_at(bytes, SEQUENCE)?,
            payload: &bytes[HEADER..length],
        })
    }
}

/// The attributes in a run of bytes (type without its flag bits, value); ends at the first
/// malformed one.
#[derive(Debug, Clone)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Attributes<'a> {
    /// The attributes after a fixed header of `skip` bytes; none if the payload is shorter.
    pub fn behind(payload: &'a [u8], skip: usize) -> Self {
        Self(payload.get(skip..).unwrap_or_default())
    }

    /// The value of the first attribute of a type.
    pub fn find(self, kind: u16) -> Option<&'a [u8]> {
        let mut attributes = self;
        attributes.find_map(|(found, value)| (found == kind).then_some(value))
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let bytes = self.0;
        let length = usize::from(u16_at(bytes, 0)?);
        // NLA_F_NESTED and NLA_F_NET_BYTEORDER are hints only.
        let kind = u16_at(bytes, 2)? & libc::NLA_TYPE_MASK as u16;
        if length < 4 || length > bytes.len() {
            return None;
        }
        self.0 = &bytes[align(length).min(bytes.len())..];
        Some((kind, &bytes[4..length]))
    }
}

fn align(length: usize) -> usize {
    (length + 3) & !3
}

/// The 16-bit number at an offset.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// The 32-bit number at an offset.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The 64-bit number at an offset.
pub fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// A string attribute up to its NUL; what is not UTF-8 is replaced.
pub fn text(value: &[u8]) -> String {
    let end = value.iter().position(|&b| b == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

/// A message being written.
#[derive(Debug, Clone)]
pub struct Builder(Vec<u8>);

impl Builder {
    /// A message of a type (nlmsg_type) with its fixed header, of the family that the type belongs
    /// to.
    pub fn new(kind: u16, fixed: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(128);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&kind.to_ne_bytes());
        bytes.extend_from_slice(&[0; 10]);
        bytes.extend_from_slice(fixed);
        bytes.resize(align(bytes.len()), 0);
        Self(bytes)
    }

    /// Sets flags (`NLM_F_*`), beside those that are set already.
    pub fn flags(mut self, flags: i32) -> Self {
        let at = FLAGS..FLAGS + 2;
        let all = u16_at(&self.0, FLAGS).unwrap_or(0) | flags as u16;
        self.0[at].copy_from_slice(&all.to_ne_bytes());
        self
    }

    /// Adds an attribute. Values longer than 65,531 bytes do not fit and are cut off.
    pub fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let value = &value[..value.len().min(usize::from(u16::MAX) - 4)];
        self.0
            .extend_from_slice(&(value.len() as u16 + 4).to_ne_bytes());
        self.0.extend_from_slice(&kind.to_ne_bytes());
        self.0.extend_from_slice(value);
        self.0.resize(align(self.0.len()), 0);
        self
    }

    /// Adds a 32-bit attribute.
    pub fn number(self, kind: u16, value: u32) -> Self {
        self.attribute(kind, &value.to_ne_bytes())
    }

    /// Adds a string attribute with its NUL.
    pub fn string(self, kind: u16, value: &str) -> Self {
        let mut bytes = value.as_bytes().to_vec();
        bytes.push(0);
        self.attribute(kind, &bytes)
    }

    /// Adds a nested attribute made of others.
    pub fn nested(self, kind: u16, fill: impl FnOnce(Self) -> Self) -> Self {
        self.attribute(kind | libc::NLA_F_NESTED as u16, &Self::attributes(fill))
    }

    /// The bytes of attributes alone, for structures that have some within a message.
    pub fn attributes(fill: impl FnOnce(Self) -> Self) -> Vec<u8> {
        fill(Self(Vec::new())).0
    }

    /// The finished message under a sequence number.
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..KIND].copy_from_slice(&length.to_ne_bytes());
        self.0[SEQUENCE..SEQUENCE + 4].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_built_is_read_again() {
        let bytes = Builder::new(24, &[2, 0, 0, 0])
            .flags(1)
            .flags(4)
            .number(7, 0x0102_0304)
            .string(3, "eth0")
            .nested(18, |inner| inner.string(1, "veth"))
            .finish(42);
        let message = Messages(&bytes).next().expect("one message");
        assert_eq!((message.kind, message.flags, message.sequence), (24, 5, 42));
        let attributes = Attributes::behind(message.payload, 4);
        assert_eq!(
            attributes.clone().find(7).and_then(|v| u32_at(v, 0)),
            Some(0x0102_0304)
        );
        assert_eq!(
            attributes.clone().find(3).map(text).as_deref(),
            Some("eth0")
        );
        let inner = attributes.find(18).expect("nested");
        assert_eq!(Attributes(inner).find(1).map(text).as_deref(), Some("veth"));
    }

    #[test]
    fn a_message_longer_than_its_datagram_ends_the_walk() {
        let mut bytes = Builder::new(24, &[0; 4]).finish(0);
        bytes.truncate(18);
        assert_eq!(Messages(&bytes).count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_walked_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            // Nothing is read twice.
            let messages: usize = Messages(&bytes).map(|m| HEADER + m.payload.len()).sum();
            prop_assert!(messages <= bytes.len());
            let attributes: usize = Attributes(&bytes).map(|(_, value)| 4 + value.len()).sum();
            prop_assert!(attributes <= bytes.len());
            for (_, value) in Attributes(&bytes) {
                prop_assert!(!text(value).contains('\0'));
            }
        }
    }
}
