//! Faults of the network and the NAS, with their repair and the allowed outcomes of a run.

use super::Lab;
use super::service::AMPLE_CAP;

/// Cap in seconds for faults that last until the run is stored as hung.
const CAP: u32 = 12;
/// Cap in seconds for a long network delay, under which a run may reach its cap while still making progress.
const LONG_CAP: u32 = 40;

/// Fault, and the allowed outcomes of a run during it.
pub struct Fault {
    /// Name in the table of results.
    pub name: &'static str,
    /// Starts the fault on a share. Panics if the lab cannot, which ends the suite.
    pub begin: fn(&Lab, &str),
    /// Ends the fault on a share. Panics if the lab cannot, which ends the suite.
    pub end: fn(&Lab, &str),
    /// Duration in seconds; `None` means until the run is stored.
    pub lasts: Option<u64>,
    /// Cap of runs in seconds.
    pub cap: u32,
    /// Allowed outcomes of the run on the share.
    pub right: &'static [&'static str],
}

/// All faults, from mild to severe.
pub const FAULTS: [Fault; 11] = [
    Fault {
        name: "5 % loss",
        begin: |lab, _| lab.net("loss 5%"),
        end: |lab, _| lab.heal(),
        lasts: None,
        cap: AMPLE_CAP,
        right: &["ok"],
    },
    Fault {
        name: "200 ms delay each way",
        begin: |lab, _| lab.net("delay 200ms"),
        end: |lab, _| lab.heal(),
        lasts: None,
        cap: LONG_CAP,
        right: &["ok", "hung"],
    },
    Fault {
        name: "cable cut for 5 s",
        begin: |lab, _| lab.cut(),
        end: |lab, _| lab.heal(),
        lasts: Some(5),
        cap: AMPLE_CAP,
        right: &["ok"],
    },
    // The SMB client fails a call after two missed echoes; the NFS client never does.
    Fault {
        name: "cable cut for 60 s",
        begin: |lab, _| lab.cut(),
        end: |lab, _| lab.heal(),
        lasts: Some(60),
        cap: AMPLE_CAP,
        right: &["ok", "error"],
    },
    Fault {
        name: "cable cut until the cap",
        begin: |lab, _| lab.cut(),
        end: |lab, _| lab.heal(),
        lasts: None,
        cap: CAP,
        right: &["hung"],
    },
    Fault {
        name: "NAS frozen until the cap",
        begin: |lab, _| lab.freeze(),
        end: |lab, _| lab.thaw(),
        lasts: None,
        cap: CAP,
        right: &["hung"],
    },
    Fault {
        name: "NAS without power, booted again",
        begin: |lab, _| lab.power_off(),
        end: |lab, _| lab.power_on(),
        lasts: None,
        cap: CAP,
        right: &["hung", "error"],
    },
    Fault {
        name: "folder deleted",
        begin: delete,
        end: restore,
        lasts: None,
        cap: AMPLE_CAP,
        right: &["error"],
    },
    Fault { name: "disk full", begin: fill, end: free, lasts: None, cap: AMPLE_CAP, right: &["error"] },
    Fault {
        name: "permissions revoked",
        begin: revoke,
        end: grant,
        lasts: None,
        cap: AMPLE_CAP,
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

/// Names of the faults in the short suite.
pub const SHORT: [&str; 2] = ["cable cut until the cap", "NAS frozen until the cap"];

fn delete(lab: &Lab, share: &str) {
    lab.ask_nas(&format!("rm -rf /srv/share/{share}"));
}

fn restore(lab: &Lab, share: &str) {
    lab.ask_nas(&format!("install -d -o lab -g lab /srv/share/{share}"));
}

/// Fills the disk of the NAS with one file, up to the space that is reserved for root.
fn fill(lab: &Lab, _: &str) {
    lab.ask_nas("fallocate -l $(df --output=avail -B1 /srv/share | tail -1) /srv/share/filler");
}

fn free(lab: &Lab, _: &str) {
    lab.ask_nas("rm /srv/share/filler");
}

fn revoke(lab: &Lab, share: &str) {
    lab.ask_nas(&format!("chown -R root:root /srv/share/{share} && chmod 700 /srv/share/{share}"));
}

fn grant(lab: &Lab, share: &str) {
    lab.ask_nas(&format!("chown -R lab:lab /srv/share/{share} && chmod 755 /srv/share/{share}"));
}

/// Restarts the server of a share so that it no longer supports the protocol version that the mount negotiated.
fn other(lab: &Lab, share: &str) {
    match share {
        "smb3" => samba(lab, "sed -i '/\\[global\\]/a server max protocol = SMB2_10' /etc/samba/smb.conf"),
        "nfs3" => nfsd(lab, "-N 3 -V 4.2"),
        _ => nfsd(lab, "-V 3 -N 4"),
    }
}

fn same(lab: &Lab, share: &str) {
    match share {
        "smb3" => samba(lab, "sed -i '/server max protocol/d' /etc/samba/smb.conf"),
        _ => nfsd(lab, "-V 3 -V 4.2"),
    }
}

fn samba(lab: &Lab, change: &str) {
    lab.ask_nas(&format!("{change} && pkill -x smbd; while pgrep -x smbd; do sleep 0.1; done; smbd -D"));
}

fn nfsd(lab: &Lab, versions: &str) {
    lab.ask_nas(&format!(
        "rpc.nfsd 0 && rpc.nfsd -G 10 -L 10 {versions} 8 && echo Y >/proc/fs/nfsd/v4_end_grace"
    ));
}
