//! What a machine's own shell is asked to do. Plain POSIX `sh`; every value that comes from elsewhere is quoted.
//!
//! Everything of ours lies in `~/.peregrine-agent`: `bin/<digest>/peregrine`, `shared` (environments), and a folder per
//! target of a server with `port`, `tunnel` and `a/<attempt>/{token,authority,boot,<part>/…}`. Names are short,
//! for the agent has a socket below them.

use crate::shell::quote;
use domain::{AttemptId, cluster::Launch};

/// Functions the others use. `alive FILE`: whether the process lives that a file names by its number and birth.
pub(crate) const WORDS: &str = r#"umask 077
top="${PEREGRINE_TOP:-$HOME/.peregrine-agent}"
born() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
alive() { read -r p b < "$1" 2>/dev/null && [ -n "$b" ] && [ "$(born "$p")" = "$b" ] && ! grep -q '^State:.Z' "/proc/$p/status" 2>/dev/null; }
owned() { grep -lsaF "$1/" /proc/[0-9]*/environ 2>/dev/null | cut -d / -f 3; }
"#;

/// The folder of one target of one server.
pub(crate) fn folder(key: &str) -> String {
    format!("d=\"$top/\"{}\n", quote(key))
}

/// Takes the place of an earlier connection that the machine has not given up yet; prints the port it led back by.
pub(super) fn arrive(key: &str) -> String {
    format!(
        r#"{WORDS}{}mkdir -p "$d/a" "$top/shared" || exit 1
p=$$
while [ "$p" -gt 1 ]; do
  case "$(cat "/proc/$p/comm" 2>/dev/null)" in sshd*) break ;; esac
  p=$(sed 's/.*) //' "/proc/$p/stat" | cut -d ' ' -f 2)
done
if alive "$d/tunnel"; then read -r old b < "$d/tunnel"; [ "$old" = "$p" ] || kill "$old" 2>/dev/null; fi
[ "$p" -gt 1 ] && echo "$p $(born "$p")" > "$d/tunnel"
cat "$d/port" 2>/dev/null || echo 0
"#,
        folder(key)
    )
}

/// Writes down by which port the server is reached from now on.
pub(super) fn reached_by(key: &str, scheme: &str, port: u16) -> String {
    format!(
        "{WORDS}{}echo {port} > \"$d/port\"\nprintf %s {scheme}://127.0.0.1:{port} > \"$d/server.new\" && mv \"$d/server.new\" \"$d/server\"\n",
        folder(key)
    )
}

/// What does not change while a machine is up: its name and kind, processors, memory, GPUs.
pub(super) const SYSTEM: &str = r#"echo "name $(uname -n)"
echo "kind $(uname -sm)"
echo "boot $(cat /proc/sys/kernel/random/boot_id)"
echo "cpus $(getconf _NPROCESSORS_ONLN)"
echo "memory $(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
echo "gpus $(nvidia-smi -L 2>/dev/null | grep -c '^GPU')"
echo "libc $(getconf GNU_LIBC_VERSION 2>/dev/null)"
echo "python $(python3 --version 2>/dev/null)"
set -- $(df -Pk "$HOME" | tail -n 1); echo "disk $4"
"#;

/// Where a program with this digest lies.
pub(crate) fn program(digest: &str) -> String {
    format!("\"$HOME/.peregrine-agent/bin/{digest}/peregrine\"")
}

/// Prints `yes` if the program is there, and what it says of itself.
pub(super) fn has_program(digest: &str) -> String {
    format!("p={}; [ -x \"$p\" ] && echo yes && \"$p\" version 2>&1\nexit 0\n", program(digest))
}

/// Every attempt that the machine holds, with what became of its parts.
pub(super) fn look(key: &str) -> String {
    format!(
        r#"{WORDS}{}echo "now $(date +%s)"
boot=$(cat /proc/sys/kernel/random/boot_id)
for a in "$d"/a/att_*; do
  [ -d "$a" ] || continue
  n=${{a##*/}}
  echo "attempt $n"
  for q in "$a"/[0-9]*; do
    [ -d "$q" ] || continue
    i=${{q##*/}}
    left=$(cat "$q/left" 2>/dev/null)
    case "$left" in 0|1) echo "left $n $i"; continue ;; esac
    if [ "$(cat "$a/boot")" != "$boot" ]; then echo "rebooted $n $i"; continue; fi
    if [ -z "$left" ] && alive "$q/pid"; then echo "runs $n $i"; continue; fi
    echo "dead $n $i ${{left:-137}}"
    for p in $(owned "$q"); do kill -9 "$p" 2>/dev/null; done
  done
done
"#,
        folder(key)
    )
}

/// Chooses `count` of a machine's GPUs that none of those has which `used` prints, and keeps the choice in the folder `$o`: whatever
/// runs there sees these and no others.
pub(crate) fn devices(used: &str, count: u32, total: u32) -> String {
    format!(
        r#"if [ ! -s "$o/gpus" ]; then
  used=" $({used} | tr ',\n' '  ') "; g=; n=0; i=0
  while [ "$i" -lt {total} ] && [ "$n" -lt {count} ]; do
    case "$used" in *" $i "*) ;; *) g="$g${{g:+,}}$i"; n=$((n + 1)) ;; esac
    i=$((i + 1))
  done
  if [ "$n" -lt {count} ]; then echo "{count} of this machine's {total} GPUs are wanted and $n are free" >&2; exit 1; fi
  printf '%s\n' "$g" > "$o/gpus" || exit 1
fi
PEREGRINE_DEVICES=$(cat "$o/gpus"); export PEREGRINE_DEVICES
"#
    )
}

/// The GPUs of nodes of this machine.
pub(crate) const DEVICES_OF_NODES: &str = r#"cat "$top"/*/gpus 2>/dev/null"#;
/// The GPUs of attempts at work here.
const DEVICES_AT_WORK: &str =
    r#"for q in "$d"/a/att_*/[0-9]*; do alive "$q/pid" && cat "${q%/*}/gpus" 2>/dev/null; done"#;

/// Begins parts of an attempt, unless its folder is there. `program` is a word of the shell's, `address` the machine's own.
/// `devices` is how many of how many GPUs are for it, where others share the machine.
pub(super) fn launch(
    key: &str,
    (program, address): (&str, &str),
    (launch, parts): (&Launch, &[u32]),
    devices: Option<(u32, u32)>,
) -> String {
    let attempt = launch.attempt.to_string();
    let choose = devices.map(|(count, total)| format!("o=$n\n{}", self::devices(DEVICES_AT_WORK, count, total)));
    let mut text = format!(
        r#"{WORDS}{}a="$d/a/"{}
[ -e "$a" ] && exit 0
n="$d/a/new-"{}; rm -rf "$n"; mkdir -p "$n" || exit 1
printf %s {} > "$n/token" && printf %s {} > "$n/authority" && cat /proc/sys/kernel/random/boot_id > "$n/boot" || exit 1
{}mv "$n" "$a" || exit 1
export PEREGRINE_SERVER_FILE="$d/server" PEREGRINE_TOKEN_FILE="$a/token" PEREGRINE_CA_FILE="$a/authority"
export PEREGRINE_ATTEMPT={} PEREGRINE_SHARED="$top/shared" PEREGRINE_OUTSIDE=1 POD_IP={}
"#,
        folder(key),
        quote(&attempt),
        quote(&attempt),
        quote(&launch.token),
        quote(&launch.authority),
        choose.unwrap_or_default(),
        quote(&attempt),
        quote(address),
    );
    for part in parts {
        // The shell in between lives as long as the agent and writes down how it left.
        let run = r#"{ "$0" agent pod & p=$!; echo "$p $(sed "s/.*) //" "/proc/$p/stat" | cut -d " " -f 20)" > pid.new; mv pid.new pid; wait "$p"; echo "$?" > left; }"#;
        text += &format!(
            "mkdir -p \"$a/{part}/h\" && cd \"$a/{part}\" || exit 1\nPEREGRINE_PART={part} PEREGRINE_HOME=\"$a/{part}/h\" setsid nohup sh -c {} {} > log 2>&1 < /dev/null &\n",
            quote(run),
            program,
        );
        // Whoever looks next must find its process.
        text += "for t in 1 2 3 4 5 6 7 8 9 10; do [ -e pid ] && break; sleep 0.1; done\n";
    }
    text
}

/// Asks the agents of every attempt to end what they run, as one would whose machine is about to go.
pub(super) fn notice(key: &str) -> String {
    format!(
        "{WORDS}{}for q in \"$d\"/a/att_*/[0-9]*; do alive \"$q/pid\" && read -r p b < \"$q/pid\" && kill \"$p\" 2>/dev/null; done\nexit 0\n",
        folder(key)
    )
}

/// Where the agents of a node find the server: at an address, or wherever a file says.
pub(super) fn settle(key: &str, server: &str) -> String {
    let server = quote(server);
    format!(
        r#"{WORDS}{}mkdir -p "$d/a" "$top/shared" || exit 1
case {server} in
  /*) ln -sfn {server} "$d/server" ;;
  *) printf %s {server} > "$d/server.new" && mv "$d/server.new" "$d/server" ;;
esac
"#,
        folder(key)
    )
}

/// Starts a node, unless it runs. `owner` is the key of its cluster; `file` says where the server is; `devices` is how many of
/// how many GPUs are for it, where others share the machine.
pub(crate) fn start_node(
    (owner, key): (&str, &str),
    (name, token): (&str, &str),
    authority: &str,
    (file, program): (&str, &str),
    devices: Option<(u32, u32)>,
) -> String {
    let choose = devices.map(|(count, total)| format!("o=$d\n{}", self::devices(DEVICES_OF_NODES, count, total)));
    format!(
        r#"{WORDS}{}o={}
if [ -e "$d/owner" ] && [ "$(cat "$d/owner")" != "$o" ]; then echo "another cluster has a node in $d" >&2; exit 1; fi
if alive "$d/pid"; then exit 0; fi
mkdir -p "$d" && printf %s "$o" > "$d/owner" || exit 1
printf %s {} > "$d/name" && printf %s {} > "$d/join" && printf %s {} > "$d/authority" || exit 1
{}cd "$d"
export PEREGRINE_TOP="$top" PEREGRINE_NODE={} PEREGRINE_NODE_KEY={} PEREGRINE_SERVER_FILE={file}
export PEREGRINE_JOIN_FILE="$d/join" PEREGRINE_CA_FILE="$d/authority"
setsid nohup {program} agent node --home "$d" > log 2>&1 < /dev/null &
p=$!
echo "$p $(born "$p")" > pid.new && mv pid.new pid
"#,
        folder(key),
        quote(owner),
        quote(name),
        quote(token),
        quote(authority),
        choose.unwrap_or_default(),
        quote(name),
        quote(key),
    )
}

/// Every node of a cluster that was started here and not taken away: its name, whether it lives, and its last words. Nodes of
/// other clusters that live are called `other`.
pub(crate) fn nodes(owner: &str) -> String {
    format!(
        r#"for n in "$top"/*/name; do
  [ -e "$n" ] || continue
  q=${{n%/name}}
  if [ -e "$q/owner" ]; then
    own=$(cat "$q/owner")
  else
    # One from before owners were written down finds the server by way of its cluster's folder.
    own=$(readlink "$q/server"); own=${{own%/server}}; own=${{own##*/}}
  fi
  state=dead; alive "$q/pid" && state=alive
  if [ "$own" != {} ]; then [ "$state" = alive ] || continue; state=other; fi
  echo "$state ${{q##*/}} $(cat "$n") $(tail -n 1 "$q/log" 2>/dev/null | tr -d '\r' | cut -c 1-300)"
done
"#,
        quote(owner)
    )
}

/// Ends a node and everything on it, and removes its folder.
pub(crate) fn end_node(key: &str) -> String {
    format!(
        r#"{WORDS}{}[ -d "$d" ] || exit 0
alive "$d/pid" && read -r p b < "$d/pid" && kill -9 "$p" 2>/dev/null
for t in 1 2 3 4 5 6 7 8 9 10; do alive "$d/pid" || break; sleep 0.1; done
for p in $(owned "$d"); do kill -9 "$p" 2>/dev/null; done
chmod -R u+w "$d" 2>/dev/null; rm -rf "$d"
[ ! -e "$d" ]
"#,
        folder(key)
    )
}

/// Ends whatever of an attempt runs, politely first, and removes its folder.
pub(super) fn remove(key: &str, attempt: &AttemptId) -> String {
    format!(
        r#"{WORDS}{}a="$d/a/"{}
[ -d "$a" ] || exit 0
for q in "$a"/[0-9]*; do alive "$q/pid" && read -r p b < "$q/pid" && kill "$p" 2>/dev/null; done
for t in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
  some=
  for q in "$a"/[0-9]*; do alive "$q/pid" && some=1; done
  [ -n "$some" ] || break
  sleep 0.25
done
for p in $(owned "$a"); do kill -9 "$p" 2>/dev/null; done
chmod -R u+w "$a" 2>/dev/null; rm -rf "$a"
[ ! -e "$a" ]
"#,
        folder(key),
        quote(&attempt.to_string())
    )
}

/// The last lines of what an agent printed before it ended without a word.
pub(super) fn last_words(key: &str, attempt: &AttemptId, part: u32) -> String {
    format!("{WORDS}{}tail -c 600 \"$d/a/\"{}/{part}/log 2>/dev/null\n", folder(key), quote(&attempt.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{fs, path::Path, process::Command};

    /// What is chosen in the folder `own`, by what it prints.
    fn chosen(top: &Path, own: &str, count: u32, total: u32) -> Result<String, String> {
        let choose = devices(DEVICES_OF_NODES, count, total);
        let script = format!("top={}\no=\"$top/{own}\"\n{choose}echo \"$PEREGRINE_DEVICES\"\n", top.display());
        fs::create_dir_all(top.join(own)).unwrap();
        let ran = Command::new("sh").arg("-c").arg(script).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap().trim().to_owned();
        if ran.status.success() { Ok(text(ran.stdout)) } else { Err(text(ran.stderr)) }
    }

    #[test]
    fn parts_of_a_machine_have_gpus_of_their_own_and_keep_them() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        assert_eq!(chosen(top, "one", 2, 5).unwrap(), "0,1");
        assert_eq!(chosen(top, "two", 2, 5).unwrap(), "2,3");
        assert_eq!(chosen(top, "none", 0, 5).unwrap(), "");
        assert_eq!(chosen(top, "one", 2, 5).unwrap(), "0,1", "one that is started again");
        let why = chosen(top, "three", 2, 5).unwrap_err();
        assert_eq!(why, "2 of this machine's 5 GPUs are wanted and 1 are free");
        fs::remove_dir_all(top.join("one")).unwrap();
        assert_eq!(chosen(top, "three", 2, 5).unwrap(), "0,1");
        // Eleven is not one.
        assert_eq!(chosen(top, "many", 8, 12).unwrap(), "4,5,6,7,8,9,10,11");
    }
}
