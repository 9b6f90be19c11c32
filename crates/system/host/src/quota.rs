//! The CPU quota of control groups (cgroups(7)): the part of its cores that a container may use.

use std::path::{Component, Path};

/// Usual locations of control groups: version 2, or a folder for each hierarchy of version 1.
const ROOT: &str = "/sys/fs/cgroup";

/// Returns the CPU time that a process's control groups allow it, in cores, to three decimals.
/// `None` means no bound, or none that is visible from here.
pub(crate) fn cpu_quota(pid: u32) -> Option<f64> {
    let groups = std::fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    least(Path::new(ROOT), &String::from_utf8_lossy(&groups))
}

/// Returns the smallest quota of the groups in a /proc/PID/cgroup and of their ancestors.
fn least(root: &Path, groups: &str) -> Option<f64> {
    groups.lines().filter_map(|line| quota_of_hierarchy(root, line)).min_by(f64::total_cmp)
}

/// Returns the smallest quota of the group in a line of /proc/PID/cgroup and of its ancestors. A
/// line `0::/path` is of version 2, `3:cpu,cpuacct:/path` of version 1.
fn quota_of_hierarchy(root: &Path, line: &str) -> Option<f64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let top = match controllers {
        "" => root.to_owned(),
        some if some.split(',').any(|one| one == "cpu") => root.join("cpu"),
        _ => return None,
    };
    let group = Path::new(path.trim_start_matches('/'));
    // outside the groups visible in this namespace
    if group.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    // a container may see its own group at the top, and a path from the machine's: missing files
    // are skipped
    let quotas = group.ancestors().filter_map(|group| quota_of_group(&top.join(group)));
    quotas.min_by(f64::total_cmp)
}

fn quota_of_group(group: &Path) -> Option<f64> {
    let text = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    match text("cpu.max") {
        Some(both) => cpu_max(&both),
        None => in_cores(&text("cpu.cfs_quota_us")?, &text("cpu.cfs_period_us")?),
    }
}

/// Parses cpu.max: `200000 100000`, µs of CPU time in as many of time, or `max 100000`.
fn cpu_max(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    in_cores(quota, period)
}

/// Returns a quota in cores; `None` for `max` and -1, which mean no bound.
fn in_cores(quota: &str, period: &str) -> Option<f64> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|number| *number > 0);
    let cores = number(quota)? as f64 / number(period)? as f64;
    // the kernel takes no less than a thousandth
    Some((cores * 1_000.0).round() / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_read_in_cores() {
        let read = ["200000 100000\n", "150000 100000", "100000 300000", "1000 1000000"];
        assert_eq!(read.map(cpu_max), [Some(2.0), Some(1.5), Some(0.333), Some(0.001)]);
        let none = ["max 100000\n", "", "200000", "1 0", "0 100000", "-5 100000", "x y"];
        assert_eq!(none.map(cpu_max), [None; 7]);
        assert_eq!(
            (in_cores("50000\n", "100000\n"), in_cores("-1\n", "100000")),
            (Some(0.5), None)
        );
    }

    #[test]
    fn the_least_quota_up_to_the_root_counts() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write("a/cpu.max", "150000 100000\n");
        write("a/b/cpu.max", "300000 100000\n");
        write("a/c/cpu.max", "max 100000\n");
        write("a/d/cpu.max", "50000 100000\n");
        write("free/cpu.max", "max 100000\n");
        write("cpu/docker/cpu.cfs_quota_us", "-1\n");
        write("cpu/docker/cpu.cfs_period_us", "100000\n");
        write("cpu/cpu.cfs_quota_us", "400000\n");
        write("cpu/cpu.cfs_period_us", "100000\n");
        for (groups, cores) in [
            ("0::/a/b\n", Some(1.5)),
            ("0::/a/c/gone (deleted)\n", Some(1.5)),
            ("0::/a/d\n", Some(0.5)),
            ("0::/free\n", None),
            ("0::/\n", None),
            ("0::/../a\n", None),
            ("3:cpu,cpuacct:/docker/1f\n2:cpuset:/a\n0::/\n", Some(4.0)),
            ("3:cpu:/docker\n0::/a\n", Some(1.5)),
            ("", None),
            ("damaged", None),
        ] {
            assert_eq!(least(root.path(), groups), cores, "{groups:?}");
        }
    }
}
