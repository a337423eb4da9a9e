//! Access to the control socket, by the user and groups of a peer.
//!
//! Root may do anything. Without a group that may only ask, the file mode of the socket admits root
//! and the group that may change things, and whoever gets in may do anything. With one, everyone
//! may connect, and is then judged by the user and group that the kernel reports, and by the member
//! lists in /etc/group.

use std::fs;

use rustix::net::UCred;

use crate::config::Control;
use crate::history::Who;

/// The rights of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Access {
    /// Nothing.
    None,
    /// Ask.
    Show,
    /// Ask and change.
    Change,
}

/// The number of a group, if it exists.
pub(super) fn group_id(name: &str) -> Option<u32> {
    fs::read_to_string("/etc/group")
        .ok()
        .and_then(|groups| group(&groups, name).map(|(id, _)| id))
}

/// Determines the rights of a connection's peer.
pub(super) fn of(peer: &UCred, who: &Who, control: &Control) -> Access {
    let Some(show_group) = control.show_group.as_deref() else {
        return Access::Change;
    };
    let groups = fs::read_to_string("/etc/group").unwrap_or_default();
    let (user, gid) = (who.name.as_deref(), peer.gid.as_raw());
    judge(
        (who.uid, user),
        gid,
        control.group.as_deref(),
        show_group,
        &groups,
    )
}

/// Identifies the peer of a connection.
pub(super) fn who(peer: &UCred) -> Who {
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let uid = peer.uid.as_raw();
    Who {
        uid,
        pid: peer.pid.as_raw_nonzero().get(),
        name: user(&users, uid).map(str::to_owned),
    }
}

/// The name of a user in the text of /etc/passwd: `name:password:number:...`.
fn user(users: &str, uid: u32) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid.to_string()).then_some(name)
    })
}

fn judge(
    (uid, user): (u32, Option<&str>),
    gid: u32,
    change: Option<&str>,
    show: &str,
    groups: &str,
) -> Access {
    let member = |name: &str| {
        let found = group(groups, name);
        found.is_some_and(|(id, members)| {
            id == gid || user.is_some_and(|user| members.contains(&user))
        })
    };
    if uid == 0 || change.is_some_and(member) {
        Access::Change
    } else if member(show) {
        Access::Show
    } else {
        Access::None
    }
}

/// Number and members of a group in the text of /etc/group: `name:password:number:member,member`.
fn group<'a>(groups: &'a str, name: &str) -> Option<(u32, Vec<&'a str>)> {
    groups.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        match fields[..] {
            [found, _, id, members] if found == name => {
                Some((id.parse().ok()?, members.split(',').collect()))
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_and_the_groups_members_are_let_in() {
        let groups = "root:x:0:\nparshall:x:990:eve\nusers:x:100:adam\n";
        let users =
            "root:x:0:0::/:/bin/sh\nadam:x:1000:1000::/:/bin/sh\neve:x:1001:1001::/:/bin/sh\n";
        let judge = |uid, gid| {
            let user = user(users, uid);
            judge((uid, user), gid, Some("parshall"), "users", groups)
        };
        assert_eq!(judge(0, 0), Access::Change);
        assert_eq!(judge(1001, 1001), Access::Change);
        assert_eq!(judge(1000, 1000), Access::Show);
        assert_eq!(judge(1002, 990), Access::Change);
        assert_eq!(judge(1002, 100), Access::Show);
        assert_eq!(judge(1002, 1002), Access::None);
    }

    #[test]
    fn damaged_files_let_nobody_in() {
        assert_eq!(
            judge(
                (1000, user(":\n\n", 1000)),
                1000,
                Some("a"),
                "b",
                "a:x\n::::\nb:x:many:adam\n"
            ),
            Access::None
        );
    }
}
