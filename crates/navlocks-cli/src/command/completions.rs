//! `navlocks completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::exit::Failure;
use crate::printer;

/// Print a script that completes what is typed
///
/// For bash: `source <(navlocks completions bash)`. In bash, zsh and fish, `steal` and `release`
/// are completed by the names of locks that are held, as `query --names` prints them.
#[derive(Debug, Args)]
pub(super) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Completions {
    pub(super) fn perform(&self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut super::Cli::command(), "navlocks", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        printer::print(&with_held_names(self.shell, script))
    }
}

/// Makes a script complete `steal` and `release` by the names of held locks. The shell never
/// evaluates a name.
fn with_held_names(shell: Shell, mut script: String) -> String {
    match shell {
        Shell::Bash => script.push_str(BASH),
        Shell::Fish => script.push_str(FISH),
        Shell::Zsh => {
            script = script.replace("'*::name -- The name:_default'", ZSH_ARGUMENT);
            script = script.replacen("autoload -U is-at-least\n", ZSH, 1);
        }
        _ => {}
    }
    script
}

const BASH: &str = r#"
_navlocks_held() {
    _navlocks "$@"
    local current=${COMP_WORDS[COMP_CWORD]} name
    [[ ${COMP_WORDS[1]} == @(steal|release) && $current != -* ]] || return 0
    [[ ${COMP_WORDS[COMP_CWORD-1]} == --@(url|partition|token-file|ca-file|answer-timeout) ]] && return 0
    COMPREPLY=()
    while IFS= read -r name; do
        [[ $name == "$current"* ]] && COMPREPLY+=("$(printf %q "$name")")
    done < <("$1" query --names --answer-timeout 1s 2>/dev/null)
    return 0
}
complete -F _navlocks_held -o bashdefault -o default navlocks
"#;

const FISH: &str = r#"
complete -c navlocks -n "__fish_navlocks_using_subcommand steal" -f -a "(navlocks query --names --answer-timeout 1s 2>/dev/null)"
complete -c navlocks -n "__fish_navlocks_using_subcommand release" -f -a "(navlocks query --names --answer-timeout 1s 2>/dev/null)"
"#;

const ZSH_ARGUMENT: &str = "'*::name -- The name:_navlocks_held'";

const ZSH: &str = r#"autoload -U is-at-least

_navlocks_held() {
    local -a names
    names=(${(f)"$(_call_program names navlocks query --names --answer-timeout 1s 2>/dev/null)"})
    compadd -a names
}
"#;
