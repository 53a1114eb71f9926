// SPDX-License-Identifier: Apache-2.0
// `xplanectl completion SHELL`: scripts that ask `xplanectl __complete` (complete.c), so that they
// fit the program that is installed.
#include <stdio.h>
#include <string.h>

#include "base/text/near.h"
#include "cli/args.h"

// bash cuts words at COMP_WORDBREAKS: the text before the last of these is typed already.
static const char BASH[] =
    "# bash completion of xplanectl; by `xplanectl completion bash`.\n"
    "_xplanectl() {\n"
    "    local line=${COMP_LINE:0:COMP_POINT} reply word before=\n"
    "    word=${line##*[[:space:]]}\n"
    "    [[ $word == *[=:]* && $COMP_WORDBREAKS == *=* ]] && before=${word%\"${word##*[=:]}\"}\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r reply; do\n"
    "        case $reply in\n"
    "            $'\\tfiles') compopt -o default 2>/dev/null ;;\n"
    "            *)\n"
    "                reply=${reply%%$'\\t'*}\n"
    "                [[ $reply == *= ]] && compopt -o nospace 2>/dev/null\n"
    "                printf -v reply %q \"${reply#\"$before\"}\"\n"
    "                COMPREPLY+=(\"$reply\")\n"
    "                ;;\n"
    "        esac\n"
    "    done < <(\"$1\" __complete bash -- \"$line\" 2>/dev/null)\n"
    "}\n"
    "complete -F _xplanectl xplanectl\n";

static const char ZSH[] =
    "#compdef xplanectl\n"
    "# zsh completion of xplanectl; by `xplanectl completion zsh`.\n"
    "_xplanectl() {\n"
    "    local -a plain open texts\n"
    "    local reply word files\n"
    "    for reply in \"${(@f)$(${~words[1]} __complete zsh -- \"${(@Q)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "        word=${reply%%$'\\t'*}\n"
    "        case $reply in\n"
    "            '') ;;\n"
    "            $'\\tfiles') files=1 ;;\n"
    "            *=$'\\t'*) open+=(\"$word\") ;;\n"
    "            *)\n"
    "                plain+=(\"$word\")\n"
    "                reply=${reply#*$'\\t'}\n"
    "                texts+=(\"$word${reply:+  $reply}\")\n"
    "                ;;\n"
    "        esac\n"
    "    done\n"
    "    (( $#plain )) && compadd -l -d texts -a plain\n"
    "    (( $#open )) && compadd -S '' -a open\n"
    "    [[ -n $files ]] && _files\n"
    "}\n"
    "if [[ $funcstack[1] == _xplanectl ]]; then _xplanectl \"$@\"; else compdef _xplanectl "
    "xplanectl; fi\n";

static const char FISH[] =
    "# fish completion of xplanectl; by `xplanectl completion fish`.\n"
    "function __xplanectl_complete\n"
    "    set -l before (commandline -opc)\n"
    "    set -l word (commandline -ct)\n"
    "    for reply in ($before[1] __complete fish -- $before[2..-1] \"$word\" 2>/dev/null)\n"
    "        switch $reply\n"
    "            case \\tfiles\n"
    "                __fish_complete_path $word\n"
    "            case '*'\n"
    "                echo $reply\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c xplanectl -f -a '(__xplanectl_complete)'\n";

int xpl_commands_completion(const struct xpl_args *a) {
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", BASH}, {"zsh", ZSH}, {"fish", FISH}};
    char hint[XPL_NEAR_TEXT];
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shells[i].name, a->rest[1]) == 0)
            return xpl_write_out(a, shells[i].script, strlen(shells[i].script)) ? XPL_EXIT_OK
                                                                                : XPL_EXIT_FAILED;
    (void)fprintf(stderr, "xplanectl: no completion for \"%s\"%s\nShells: bash, zsh, fish\n",
                  a->rest[1], xpl_near_of(a->rest[1], "bash|zsh|fish", hint));
    return XPL_EXIT_USAGE;
}
