//! The subjects of a fleet, and their permissions.

use crate::credentials::Role;

/// The names under which a fleet's messages travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subjects {
    prefix: String,
}

impl Subjects {
    /// Creates the subjects of `fleet`, whose name has letters, digits, `-` and `_`.
    pub fn new(fleet: &str) -> Subjects {
        Subjects { prefix: format!("ls.{fleet}") }
    }

    /// Returns the subject from the manager to all.
    pub fn command(&self) -> String {
        format!("{}.cmd", self.prefix)
    }

    /// Returns the subject from the manager to one agent.
    pub fn agent_subject(&self, agent: &str) -> String {
        format!("{}.to.{agent}", self.prefix)
    }

    /// Returns the subject of an agent's messages.
    pub fn from(&self, agent: &str) -> String {
        format!("{}.from.{agent}", self.prefix)
    }

    /// Returns the subject of an agent's rows.
    pub fn rows(&self, agent: &str) -> String {
        format!("{}.rows.{agent}", self.prefix)
    }

    /// Returns the subject for observations of a watch of the target's machine.
    pub fn target(&self, watch: &str) -> String {
        format!("{}.sut.{watch}", self.prefix)
    }

    /// Returns the subject for an operator's questions, and for the answers to one operator.
    pub fn control(&self) -> String {
        format!("{}.ctl", self.prefix)
    }

    pub fn answer(&self) -> String {
        format!("{}.said", self.prefix)
    }

    /// Returns the kind and sender of a message that the manager gets: `from`, `rows`, `sut`,
    /// `ctl`.
    pub fn sender<'a>(&self, subject: &'a str) -> Option<(&'a str, &'a str)> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix('.')?;
        Some(rest.split_once('.').unwrap_or((rest, "")))
    }

    /// Returns the subjects that a party with this role and id may publish and subscribe to, as
    /// allow lists only: no inbox, and none of the server's own subjects.
    pub fn permitted(&self, role: Role, id: &str) -> (Vec<String>, Vec<String>) {
        match role {
            Role::Manager => (
                vec![self.command(), self.agent_subject("*"), self.answer()],
                vec![self.from("*"), self.rows("*"), self.target("*"), self.control()],
            ),
            Role::Agent => {
                (vec![self.from(id), self.rows(id)], vec![self.command(), self.agent_subject(id)])
            }
            Role::Watch => (vec![self.target(id)], vec![self.command(), self.agent_subject(id)]),
            Role::Operator => (vec![self.control()], vec![self.answer()]),
        }
    }
}
