// The configuration section `guardrails` of headrace.yaml.

import * as z from "zod";
import { PatternSet } from "../../base/patterns/pattern-set.ts";
import { PatternFault } from "../../base/patterns/pattern-syntax.ts";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { duplicateFaults, entry, field, list, oneOf, printablePattern, said, trueOrFalse } from "../../config/field.ts";
import { type EntryFault, maxModelIdLength } from "../../domain/models/model-entry.ts";
import { ruleGroups, rulesOf } from "../../domain/secret-rules/secret-rules.ts";
import {
  type GuardrailSettings,
  guardrailActions,
  guardrailKinds,
  guardrailNamePattern,
  guardrailNameText,
  guardrailSides,
} from "./model.ts";

const maxPatterns = 256;
const maxRules = 64;
const defaultTimeoutSeconds = 5;

const pattern = field(
  z.strictObject({
    name: field(z.string().regex(/^[A-Za-z0-9][\w.-]{0,62}$/), {
      doc: "Name in records, and the text that replaces a match if `action` is `mask`.",
      must: "1 to 63 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
      fix: "Give a name such as customer-number.",
    }),
    pattern: field(z.string().min(1).max(2_000), {
      doc: "A regular expression. Matching takes linear time.",
      must: "a regular expression of 1 to 2000 characters",
      fix: "Write one such as 'KD-[0-9]{8}', in single quotes.",
    }),
  }),
  entry("A pattern.", "name and pattern"),
);

const guardrail = field(
  z.strictObject({
    name: field(z.string().regex(guardrailNamePattern), {
      doc: "Name of the guardrail, for `policies.guardrails` of models.",
      must: guardrailNameText,
      fix: "Give a name such as no-secrets.",
    }),
    kind: said(
      "Kind of check: your own `patterns`, rules for `secrets` and personal data, a model as a `judge`, or an `http` service.",
      oneOf(guardrailKinds),
    ),
    sides: field(
      z
        .array(said("A side.", oneOf(guardrailSides)))
        .min(1)
        .max(guardrailSides.length),
      list(
        "What the guardrail checks.",
        "request and answer, with one entry at least",
        "Write [request], [answer] or [request, answer].",
      ),
    ).default([...guardrailSides]),
    action: said(
      "Action on a finding: `block` refuses the request or ends the answer, `mask` replaces the matched text, `note` only counts the finding.",
      oneOf(guardrailActions),
    ).default("block"),
    patterns: field(
      z.array(pattern).min(1).max(maxPatterns),
      list(
        "For `patterns`: the patterns to find.",
        `1 to ${maxPatterns} patterns`,
        "Begin each entry with a hyphen, with name and pattern.",
      ),
    ).optional(),
    rules: field(
      z
        .array(
          field(z.string().regex(guardrailNamePattern), {
            doc: "Name of a group of rules.",
            must: guardrailNameText,
            fix: "Give the name of a group of rules.",
          }),
        )
        .min(1)
        .max(maxRules),
      list("For `secrets`: groups of rules. Default: all.", "names of groups, with one entry at least"),
    ).optional(),
    model: field(z.string().max(maxModelIdLength).regex(printablePattern), {
      doc: "For `judge`: id of the model that judges.",
      must: "a model id of 1 to 256 printable ASCII characters without spaces",
      fix: "Give the id under which clients see it.",
    }).optional(),
    policy: field(z.string().trim().min(1).max(20_000), {
      doc: "For `judge`: what is not allowed, as an instruction for the model.",
      must: "a text of 1 to 20000 characters",
      fix: "Write a sentence such as: Nothing about other customers.",
    }).optional(),
    url: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "For `http`: URL to which each text is posted.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as https://guard.example.com/check. Where it had a user or password: a credential goes under token.",
        quiet: true,
      },
    ).optional(),
    token: field(z.string().max(4_096).regex(printablePattern), {
      doc: `For \`http\`: bearer token. Keep it out of the file: \`\${NAME}\` takes it from a variable. Default: none.`,
      must: "1 to 4096 printable ASCII characters without spaces or line breaks",
      fix: "Check the value for blanks and line breaks, or leave the key out if the service wants none.",
      quiet: true,
    }).optional(),
    local: said(
      "For `http`: true if the service sends nothing on to other systems, so it may receive texts of keys with `never_leaves`. Default: false.",
      trueOrFalse(),
    ).optional(),
    timeout_seconds: field(z.number().min(0.1).max(60), {
      doc: `For \`judge\` and \`http\`: timeout in seconds. Default: ${defaultTimeoutSeconds}.`,
      must: "a number of seconds from 0.1 to 60",
      fix: `Give a number such as ${defaultTimeoutSeconds}, or leave it out.`,
    }).optional(),
    otherwise: said(
      "For `judge` and `http`: what happens after a timeout or an invalid answer. Default: `block`.",
      oneOf(["pass", "block"]),
    ).optional(),
  }),
  entry("A check of requests before the model receives them, and of answers before the client does.", "name and kind"),
);

const guardrails = field(
  z.array(guardrail),
  list("Checks of requests and answers. `policies.guardrails` of a model names them.", "guardrails"),
);

type FileGuardrail = z.output<typeof guardrail>;
type Member = keyof FileGuardrail;

/** The required and the optional members of each kind of guardrail. */
const members: Readonly<Record<FileGuardrail["kind"], { needs: readonly Member[]; may: readonly Member[] }>> = {
  patterns: { needs: ["patterns"], may: [] },
  secrets: { needs: [], may: ["rules"] },
  judge: { needs: ["model", "policy"], may: ["timeout_seconds", "otherwise"] },
  http: { needs: ["url"], may: ["token", "local", "timeout_seconds", "otherwise"] },
};
const common: readonly Member[] = ["name", "kind", "sides", "action"];

/** Returns the first error in a guardrail's members, or undefined. `at` is the member with the error. */
function guardrailFault(given: FileGuardrail): { at: Member; message: string; fix: string } | undefined {
  const { kind, action, patterns = [] } = given;
  const { needs, may } = members[kind];
  const missing = needs.find((member) => given[member] === undefined);
  if (missing) return { at: missing, message: `is missing; kind: ${kind} needs it`, fix: `Add ${missing}.` };
  const all = [...common, ...needs, ...may];
  const foreign = (Object.keys(given) as Member[]).find(
    (member) => !all.includes(member) && given[member] !== undefined,
  );
  if (foreign) return { at: foreign, message: `is not of kind: ${kind}`, fix: "Leave it out, or give another kind." };
  if (kind === "judge" && action === "mask") {
    return {
      at: "action",
      message: "must be block or note, as a judge does not say what it found",
      fix: "Write block.",
    };
  }
  const names = patterns.map(({ name }) => name);
  const { unknown } = rulesOf(given.rules ?? []);
  if (kind === "secrets" && unknown.length > 0) {
    const known = `${ruleGroups.join(", ")}, or a rule such as email or aws-access-key`;
    return { at: "rules", message: `has ${unknown.join(", ")}, which is no rule`, fix: `Name of these: ${known}.` };
  }
  const fault = patternsFault(patterns);
  if (fault !== undefined)
    return { at: "patterns", message: `cannot be used: ${fault}`, fix: "Write it in another way." };
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return undefined;
  return { at: "patterns", message: `has two patterns with the name ${twice}`, fix: "Give each a name of its own." };
}

/** Returns why a pattern is invalid or cannot be matched in linear time, or undefined. */
function patternsFault(patterns: FileGuardrail["patterns"]): string | undefined {
  try {
    new PatternSet(patterns ?? []);
    return undefined;
  } catch (error) {
    if (error instanceof PatternFault) return error.message;
    throw error;
  }
}

/** Converts a valid guardrail from the file to settings. */
function guardrailSettings(given: FileGuardrail): GuardrailSettings {
  const { name, kind, sides, action, timeout_seconds = defaultTimeoutSeconds, otherwise = "block" } = given;
  const common = { name, sides, action };
  const remote = { timeoutMs: Math.round(timeout_seconds * 1_000), otherwise };
  if (kind === "patterns") return { ...common, kind, patterns: given.patterns ?? [] };
  if (kind === "secrets") return { ...common, kind, rules: given.rules ?? [] };
  if (kind === "judge") return { ...common, kind, ...remote, model: given.model ?? "", policy: given.policy ?? "" };
  return { ...common, kind, ...remote, url: given.url ?? "", token: given.token ?? null, local: given.local ?? false };
}

export const guardrailsSection = {
  schemas: { guardrails: guardrails.default([]) },
  reloadable: ["guardrails"],
  settings: (data: {
    guardrails: readonly FileGuardrail[];
  }): { readonly guardrails: readonly GuardrailSettings[] } => ({
    guardrails: data.guardrails.map(guardrailSettings),
  }),
  faults: (data: { guardrails: readonly FileGuardrail[] }): EntryFault[] => [
    ...duplicateFaults("guardrails", "name", data.guardrails),
    ...data.guardrails.flatMap((given, index) => {
      const fault = guardrailFault(given);
      return fault ? [{ path: ["guardrails", index, fault.at], message: fault.message, fix: fault.fix }] : [];
    }),
  ],
  secrets: (settings: { readonly guardrails: readonly GuardrailSettings[] }) =>
    settings.guardrails.map((one) => (one.kind === "http" ? one.token : null)),
} as const;
