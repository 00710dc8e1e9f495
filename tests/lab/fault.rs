//! What goes wrong on the wire and in the NAS, how it is undone, and what may come of it.

use super::service::AMPLE;
use super::{Lab, text};

/// After these seconds a run is booked as hung, where a fault waits for that.
const CAP: u32 = 12;
/// Under a long delay a run may reach its cap, still at work, and be booked as such: this one, in seconds.
const LONG_CAP: u32 = 40;

/// Something that goes wrong, and what may come of it.
pub struct Fault {
    /// For a table.
    pub name: &'static str,
    /// Lets it come to a share; `Err` says why the lab cannot.
    pub begin: fn(&Lab, &str) -> Result<(), String>,
    /// Undoes it.
    pub end: fn(&Lab, &str) -> Result<(), String>,
    /// Seconds; without them, until the run is booked.
    pub lasts: Option<u64>,
    /// The cap of runs, in seconds.
    pub cap: u32,
    /// The outcomes that are right.
    pub right: &'static [&'static str],
}

/// The order matters little; what is gentle comes first.
pub const FAULTS: [Fault; 11] = [
    Fault {
        name: "5 % loss",
        begin: |lab, _| wire(lab, "loss 5%"),
        end: heal,
        lasts: None,
        cap: AMPLE,
        right: &["ok"],
    },
    Fault {
        name: "200 ms delay each way",
        begin: |lab, _| wire(lab, "delay 200ms"),
        end: heal,
        lasts: None,
        cap: LONG_CAP,
        right: &["ok", "hung"],
    },
    Fault { name: "cable cut for 5 s", begin: cut, end: heal, lasts: Some(5), cap: AMPLE, right: &["ok"] },
    // SMB gives a call up after two missed echoes, NFS never.
    Fault {
        name: "cable cut for 60 s",
        begin: cut,
        end: heal,
        lasts: Some(60),
        cap: AMPLE,
        right: &["ok", "error"],
    },
    Fault { name: "cable cut until the cap", begin: cut, end: heal, lasts: None, cap: CAP, right: &["hung"] },
    Fault {
        name: "NAS frozen until the cap",
        begin: freeze,
        end: thaw,
        lasts: None,
        cap: CAP,
        right: &["hung"],
    },
    Fault {
        name: "NAS without power, booted again",
        begin: power_off,
        end: power_on,
        lasts: None,
        cap: CAP,
        right: &["hung", "error"],
    },
    Fault { name: "folder deleted", begin: delete, end: restore, lasts: None, cap: AMPLE, right: &["error"] },
    Fault { name: "disk full", begin: fill, end: free, lasts: None, cap: AMPLE, right: &["error"] },
    Fault {
        name: "permissions revoked",
        begin: revoke,
        end: grant,
        lasts: None,
        cap: AMPLE,
        right: &["error"],
    },
    Fault {
        name: "other dialect",
        begin: other,
        end: same,
        lasts: None,
        cap: CAP,
        right: &["hung", "error"],
    },
];

/// Those that every change has to stand.
pub const SHORT: [&str; 2] = ["cable cut until the cap", "NAS frozen until the cap"];

fn nas(lab: &Lab, command: &str) -> Result<(), String> {
    let output = lab.nas(command);
    output.status.success().then_some(()).ok_or_else(|| format!("on the NAS: {command}: {}", text(&output)))
}

fn wire(lab: &Lab, how: &str) -> Result<(), String> {
    lab.net(how);
    Ok(())
}

fn cut(lab: &Lab, _: &str) -> Result<(), String> {
    lab.cut();
    Ok(())
}

fn heal(lab: &Lab, _: &str) -> Result<(), String> {
    lab.heal();
    Ok(())
}

fn freeze(lab: &Lab, _: &str) -> Result<(), String> {
    lab.freeze();
    Ok(())
}

fn thaw(lab: &Lab, _: &str) -> Result<(), String> {
    lab.thaw();
    Ok(())
}

fn power_off(lab: &Lab, _: &str) -> Result<(), String> {
    lab.power_off();
    Ok(())
}

fn power_on(lab: &Lab, _: &str) -> Result<(), String> {
    lab.power_on();
    Ok(())
}

fn delete(lab: &Lab, share: &str) -> Result<(), String> {
    nas(lab, &format!("rm -rf /srv/share/{share}"))
}

fn restore(lab: &Lab, share: &str) -> Result<(), String> {
    nas(lab, &format!("install -d -o lab -g lab /srv/share/{share}"))
}

/// What is left for users goes into one file; only root could write on.
fn fill(lab: &Lab, _: &str) -> Result<(), String> {
    nas(lab, "fallocate -l $(df --output=avail -B1 /srv/share | tail -1) /srv/share/filler")
}

fn free(lab: &Lab, _: &str) -> Result<(), String> {
    nas(lab, "rm /srv/share/filler")
}

fn revoke(lab: &Lab, share: &str) -> Result<(), String> {
    nas(lab, &format!("chown -R root:root /srv/share/{share} && chmod 700 /srv/share/{share}"))
}

fn grant(lab: &Lab, share: &str) -> Result<(), String> {
    nas(lab, &format!("chown -R lab:lab /srv/share/{share} && chmod 755 /srv/share/{share}"))
}

/// Restarts the server of a share so that it no longer speaks what the mount has negotiated.
fn other(lab: &Lab, share: &str) -> Result<(), String> {
    match share {
        "smb3" => samba(lab, "sed -i '/\\[global\\]/a server max protocol = SMB2_10' /etc/samba/smb.conf"),
        "nfs3" => nfsd(lab, "-N 3 -V 4.2"),
        _ => nfsd(lab, "-V 3 -N 4"),
    }
}

fn same(lab: &Lab, share: &str) -> Result<(), String> {
    match share {
        "smb3" => samba(lab, "sed -i '/server max protocol/d' /etc/samba/smb.conf"),
        _ => nfsd(lab, "-V 3 -V 4.2"),
    }
}

fn samba(lab: &Lab, change: &str) -> Result<(), String> {
    nas(lab, &format!("{change} && pkill -x smbd; while pgrep -x smbd; do sleep 0.1; done; smbd -D"))
}

fn nfsd(lab: &Lab, versions: &str) -> Result<(), String> {
    nas(
        lab,
        &format!("rpc.nfsd 0 && rpc.nfsd -G 10 -L 10 {versions} 8 && echo Y >/proc/fs/nfsd/v4_end_grace"),
    )
}
