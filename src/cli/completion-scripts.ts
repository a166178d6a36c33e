// Generates completion scripts for bash, zsh and fish from a description of the commands.

/** The values that an option can have: fixed words, a file, or any text. */
export type Values = { words: readonly string[] } | "file" | "any";

export interface Flag {
  names: readonly string[];
  description: string;
  /** The possible values. Undefined if the option takes no value. */
  values: Values | undefined;
}

/** A command that can be typed. */
export interface Entry {
  /** The words of the command, without the program's name. */
  path: readonly string[];
  subcommands: readonly { name: string; summary: string }[];
  flags: readonly Flag[];
  /** The values that the command's arguments can have. Empty if they are not fixed. */
  words: readonly string[];
}

const madeBy = (shell: string) => `# Completion of headrace; made by: headrace completion ${shell}`;

/** Returns the script for bash 3.2, which macOS has, and later. */
export function bashScript(entries: readonly Entry[]): string {
  const values = entries.flatMap(({ path, flags }) =>
    flags.flatMap((flag) => {
      if (flag.values === undefined) return [];
      const pattern = flag.names.map((name) => `"${[...path, name].join(" ")}"`).join("|");
      return [`    ${pattern}) ${bashValues(flag.values)} ;;`];
    }),
  );
  const words = entries.map(({ path, subcommands, flags, words }) => {
    const plain = [...subcommands.map(({ name }) => name), ...words].join(" ");
    return `    "${path.join(" ")}") words="${plain}" flags="${flags.flatMap(({ names }) => names).join(" ")}" ;;`;
  });
  return `${madeBy("bash")}
_headrace() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" path="" words="" flags="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "\${path:+$path }\${COMP_WORDS[i]}" in
      ${commandPaths(entries, '"')}) path="\${path:+$path }\${COMP_WORDS[i]}" ;;
    esac
  done
  case "\${path:+$path }\${COMP_WORDS[COMP_CWORD-1]}" in
${values.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  case "$cur" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$cur")) ;;
  esac
}
complete -F _headrace headrace`;
}

function bashValues(values: Values): string {
  if (values === "any") return "return";
  if (values === "file") {
    return `local IFS=$'\\n'; COMPREPLY=($(compgen -f -- "$cur")); compopt -o filenames 2>/dev/null; return`;
  }
  return `COMPREPLY=($(compgen -W "${values.words.join(" ")}" -- "$cur")); return`;
}

/** Returns the script for zsh, for a file named `_headrace` in a directory of `$fpath`, or to be sourced. */
export function zshScript(entries: readonly Entry[]): string {
  const values = entries.flatMap(({ path, flags }) =>
    flags.flatMap((flag) => {
      if (flag.values === undefined) return [];
      const pattern = flag.names.map((name) => `"${[...path, name].join(" ")}"`).join("|");
      return [`    (${pattern}) ${zshValues(flag)}; return ;;`];
    }),
  );
  const words = entries.map(({ path, subcommands, flags, words }) => {
    const named = subcommands.map(({ name, summary }) => quoted(`${name}:${summary}`));
    const options = flags.flatMap(({ names, description }) => names.map((name) => quoted(`${name}:${description}`)));
    return `    ("${path.join(" ")}")
      subcommands=(${[...named, ...words].join(" ")})
      flags=(${options.join("\n        ")}) ;;`;
  });
  return `#compdef headrace
${madeBy("zsh")}
_headrace() {
  local line="" i
  local -a subcommands flags
  for ((i = 2; i < CURRENT; i++)); do
    case "\${line:+$line }\${words[i]}" in
      (${commandPaths(entries, '"')}) line="\${line:+$line }\${words[i]}" ;;
    esac
  done
  case "\${line:+$line }\${words[CURRENT-1]}" in
${values.join("\n")}
  esac
  case "$line" in
${words.join("\n")}
  esac
  if [[ "$PREFIX" == -* ]]; then
    _describe -o option flags
  elif (( \${#subcommands} )); then
    _describe command subcommands
  fi
}
if [[ "\${funcstack[1]}" == _headrace ]]; then
  _headrace "$@"
else
  compdef _headrace headrace
fi`;
}

function zshValues({ values, description }: Flag): string {
  if (values === "file") return "_files";
  if (values === "any" || values === undefined) return `_message ${quoted(description)}`;
  return `compadd -- ${values.words.join(" ")}`;
}

/** Returns the script for fish 3 and later. */
export function fishScript(entries: readonly Entry[]): string {
  const lines = entries.flatMap(({ path, subcommands, flags, words }) => {
    const at = `complete -c headrace -n ${quoted(`__headrace_at ${quotedTwice(path.join(" "))}`)}`;
    return [
      ...subcommands.map(({ name, summary }) => `${at} -a ${name} -d ${quoted(summary)}`),
      ...words.map((word) => `${at} -a ${word}`),
      ...flags.map((flag) => `${at} ${fishFlag(flag)}`),
    ];
  });
  return `${madeBy("fish")}
function __headrace_at
    set -l line ''
    for word in (commandline -opc)[2..-1]
        switch (string trim -- "$line $word")
            case ${commandPaths(entries, "'", " ")}
                set line (string trim -- "$line $word")
        end
    end
    test "$line" = "$argv[1]"
end
complete -c headrace -f
${lines.join("\n")}`;
}

function fishFlag({ names, values, description }: Flag): string {
  const forms = names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`));
  const value =
    values === undefined
      ? []
      : values === "file"
        ? ["-r -F"]
        : values === "any"
          ? ["-x"]
          : [`-x -a ${quoted(values.words.join(" "))}`];
  return [...forms, ...value, `-d ${quoted(description)}`].join(" ");
}

/** Returns all command paths, as the pattern of a `case`. */
function commandPaths(entries: readonly Entry[], quote: string, separator = "|"): string {
  return entries
    .filter(({ path }) => path.length > 0)
    .map(({ path }) => `${quote}${path.join(" ")}${quote}`)
    .join(separator);
}

/**
 * Puts text in single quotes. Quotes in the text become typographic quotes, because only then do all three shells read
 * the result alike.
 */
function quoted(text: string): string {
  return `'${text.replaceAll("'", "’").replaceAll("\\", "/")}'`;
}

/** Puts text in double quotes, so that it stays one word within the single quotes of `quoted`. */
function quotedTwice(text: string): string {
  return `"${text}"`;
}
