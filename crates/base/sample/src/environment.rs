//! The machine and the program that measured, where known.

/// Facts that a reader needs to judge or repeat a measurement. Plain data: gathered by `host`,
/// printed by `report`. Unknown facts are empty or zero, and are not printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Name of the machine.
    pub host: String,
    /// System, release and architecture: `Linux 6.18.44 x86_64`.
    pub kernel: String,
    pub cpu_model: String,
    /// Number of cores that are online, whether or not this process may use them.
    pub cores: u32,
    /// Main memory in bytes.
    pub memory_bytes: u64,
    /// CPU frequency governor; `mixed` names when cores differ.
    pub governor: String,
    /// TCP congestion control of this host: `cubic`, `bbr` (`net.ipv4.tcp_congestion_control`,
    /// which includes IPv6).
    pub congestion: String,
    /// Kind of container or virtual machine: `docker`, `lxc`, `KVM`; empty on bare metal.
    pub container: String,
    /// Version of this program.
    pub version: String,
}
