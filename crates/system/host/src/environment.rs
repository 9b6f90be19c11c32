//! Description of this machine.

use crate::{cpu, proc};
use sample::Environment;
use std::collections::BTreeSet;
use std::path::Path;

/// Collects the facts; unknown ones stay empty. Reads a few small files.
pub fn environment() -> Environment {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let cpuinfo = read("/proc/cpuinfo");
    let cores = cpu::online_cores();
    Environment {
        host: text(name.nodename()),
        kernel: format!(
            "{} {} {}",
            text(name.sysname()),
            text(name.release()),
            text(name.machine())
        ),
        cpu_model: proc::cpu_model(&cpuinfo).unwrap_or_default().to_owned(),
        memory_bytes: proc::memory(&read("/proc/meminfo")).unwrap_or(0),
        governor: governor(cores.iter().map(|core| {
            read(&format!("/sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"))
        })),
        congestion: read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
        cores: u32::try_from(cores.len()).unwrap_or(u32::MAX),
        container: shell(&Signs::read(&cpuinfo)),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns the governor of all cores; where they differ, `mixed` and their names.
fn governor(of_cores: impl Iterator<Item = String>) -> String {
    let found: BTreeSet<String> =
        of_cores.map(|text| text.trim().to_owned()).filter(|name| !name.is_empty()).collect();
    let names: Vec<String> = found.into_iter().collect();
    match names.len() {
        0 | 1 => names.concat(),
        _ => format!("mixed ({})", names.join(", ")),
    }
}

/// Evidence of a container or a virtual machine.
#[derive(Clone, Debug, Default)]
struct Signs {
    /// /run/systemd/container, written by the container manager.
    manager: String,
    docker_file: bool,
    podman_file: bool,
    /// Content of /proc/1/cgroup.
    cgroup: String,
    /// Product and vendor by DMI.
    product: String,
    vendor: String,
    /// The CPU reports a hypervisor.
    hypervisor: bool,
}

impl Signs {
    fn read(cpuinfo: &str) -> Signs {
        Signs {
            manager: read("/run/systemd/container"),
            docker_file: Path::new("/.dockerenv").exists(),
            podman_file: Path::new("/run/.containerenv").exists(),
            cgroup: read("/proc/1/cgroup"),
            product: read("/sys/class/dmi/id/product_name"),
            vendor: read("/sys/class/dmi/id/sys_vendor"),
            hypervisor: proc::virtual_machine(cpuinfo),
        }
    }
}

/// Returns `docker`, `KVM`, `docker in KVM`, or an empty text.
fn shell(signs: &Signs) -> String {
    match (container(signs), machine(signs)) {
        (container, machine) if container.is_empty() => machine,
        (container, machine) if machine.is_empty() => container,
        (container, machine) => format!("{container} in {machine}"),
    }
}

fn container(signs: &Signs) -> String {
    let manager = signs.manager.trim();
    if !manager.is_empty() {
        return manager.to_owned();
    }
    if signs.podman_file {
        return "podman".to_owned();
    }
    let known =
        [("kubepods", "kubernetes"), ("docker", "docker"), ("libpod", "podman"), ("lxc", "lxc")];
    let by_group = known.iter().find(|(mark, _)| signs.cgroup.contains(mark));
    match by_group {
        Some((_, name)) => (*name).to_owned(),
        None if signs.docker_file => "docker".to_owned(),
        None => String::new(),
    }
}

fn machine(signs: &Signs) -> String {
    let names = [signs.product.trim(), signs.vendor.trim()];
    let known = ["KVM", "QEMU", "VMware", "VirtualBox", "Virtual Machine", "Amazon EC2", "Xen"];
    let cloud = ["Google Compute Engine", "OpenStack", "HVM domU", "Bochs", "Parallels"];
    let named = known.iter().chain(&cloud).find(|mark| names.iter().any(|n| n.contains(**mark)));
    match named {
        Some(mark) if signs.hypervisor => (*mark).to_owned(),
        // a metal machine of a cloud carries the vendor's name as well
        _ if signs.hypervisor => "a virtual machine".to_owned(),
        _ => String::new(),
    }
}

/// Returns the text of a small file; empty if it does not exist.
fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_governor_is_one_or_a_mixture() {
        let of = |names: &[&str]| governor(names.iter().map(|name| format!("{name}\n")));
        assert_eq!(of(&[]), "");
        assert_eq!(of(&["", ""]), "");
        assert_eq!(of(&["performance", "performance"]), "performance");
        assert_eq!(of(&["schedutil", "performance"]), "mixed (performance, schedutil)");
    }

    #[test]
    fn containers_and_virtual_machines() {
        let none = Signs::default();
        let vm = Signs { hypervisor: true, ..none.clone() };
        for (signs, expected) in [
            (none.clone(), ""),
            (vm.clone(), "a virtual machine"),
            (Signs { product: "KVM\n".into(), ..vm.clone() }, "KVM"),
            (Signs { vendor: "QEMU\n".into(), ..vm.clone() }, "QEMU"),
            (Signs { vendor: "Amazon EC2\n".into(), ..none.clone() }, ""),
            (Signs { docker_file: true, ..none.clone() }, "docker"),
            (Signs { docker_file: true, ..vm.clone() }, "docker in a virtual machine"),
            (Signs { podman_file: true, ..none.clone() }, "podman"),
            (Signs { manager: "systemd-nspawn\n".into(), ..none.clone() }, "systemd-nspawn"),
            (Signs { cgroup: "0::/kubepods/docker-1".into(), ..none.clone() }, "kubernetes"),
            (Signs { cgroup: "1:name=systemd:/lxc/box".into(), ..none.clone() }, "lxc"),
            (Signs { cgroup: "0::/init.scope".into(), ..none }, ""),
        ] {
            assert_eq!(shell(&signs), expected, "{signs:?}");
        }
    }

    #[test]
    fn this_machine_has_a_name_a_kernel_and_cores() {
        let here = environment();
        assert!(!here.host.is_empty() && here.kernel.contains(' ') && here.cores > 0);
        assert_eq!(here.version, env!("CARGO_PKG_VERSION"));
        if cfg!(target_os = "linux") {
            assert!(here.memory_bytes > 1 << 20, "{here:?}");
        }
    }
}
