//! Which process listens on a port already, as far as /proc tells (Linux).

use std::fs;

/// A process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The name of its program.
    pub name: String,
    /// Its number.
    pub process: u32,
}

/// Who listens on a TCP port of this machine. `None` when it cannot be told, e.g. of another user's process.
pub fn find(port: u16) -> Option<Holder> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if inodes.is_empty() {
        return None;
    }
    let processes =
        fs::read_dir("/proc").ok()?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    for process in processes {
        let process: u32 = process;
        let Ok(descriptors) = fs::read_dir(format!("/proc/{process}/fd")) else { continue };
        let holds = descriptors.flatten().any(|descriptor| {
            fs::read_link(descriptor.path()).is_ok_and(|target| {
                target.to_str().is_some_and(|target| inodes.iter().any(|it| it == target))
            })
        });
        if holds {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
            return Some(Holder { name: name.trim().chars().filter(|c| !c.is_control()).collect(), process });
        }
    }
    None
}

/// The inodes of the sockets that listen on `port`, out of the kernel's table (proc(5)): columns are the slot, the
/// local address as `hex:hex`, the remote one, the state (`0A` listens); the inode is the tenth.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    table
        .lines()
        .filter_map(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            let (_, local_port) = columns.get(1)?.rsplit_once(':')?;
            let matches = u16::from_str_radix(local_port, 16) == Ok(port) && columns.get(3) == Some(&"0A");
            matches.then(|| columns.get(9).map(|inode| (*inode).to_owned()))?
        })
        .collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_found_as_the_holder_of_its_port() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let holder = find(port).unwrap();
        assert_eq!(holder.process, std::process::id());
        assert!(!holder.name.is_empty());
        drop(listener);
        assert_eq!(find(port), None);
    }

    #[test]
    fn only_listening_sockets_of_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 x\n\
            1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 222 1 x\n\
            2: 0100007F:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 x\n";
        assert_eq!(listening_inodes(table, 8080), ["111"]);
    }
}
