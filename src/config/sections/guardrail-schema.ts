// The parts of headrace.yaml about guardrails, and about the cache of answers.

import * as z from "zod";
import { PatternSet } from "../../base/patterns/pattern-set.ts";
import { PatternFault } from "../../base/patterns/pattern-syntax.ts";
import { parseHttpUrl } from "../../base/text/http-url.ts";
import { maxModelIdLength } from "../../domain/models/model-entry.ts";
import {
  type GuardrailSettings,
  guardrailActions,
  guardrailKinds,
  guardrailNamePattern,
  guardrailNameText,
  guardrailSides,
} from "../../domain/models/policies/guardrail.ts";
import { ruleGroups, rulesOf } from "../../domain/secret-rules/secret-rules.ts";
import { entry, field, list, mapping, oneOf, printablePattern, said, trueOrFalse, whole } from "../field.ts";

const maxPatterns = 256;
const maxRules = 64;
const defaultTimeoutSeconds = 5;

const pattern = field(
  z.strictObject({
    name: field(z.string().regex(/^[A-Za-z0-9][\w.-]{0,62}$/), {
      doc: "What stands in place of what was found where it is masked, and in records.",
      must: "1 to 63 letters, digits, dots, underscores or hyphens, beginning with a letter or digit",
      fix: "Give a name such as customer-number.",
    }),
    pattern: field(z.string().min(1).max(2_000), {
      doc: "A regular expression; matched in time linear in the text.",
      must: "a regular expression of 1 to 2000 characters",
      fix: "Write one such as 'KD-[0-9]{8}', in single quotes.",
    }),
  }),
  entry("A pattern.", "name and pattern"),
);

const guardrail = field(
  z.strictObject({
    name: field(z.string().regex(guardrailNamePattern), {
      doc: "Name, by which models have it in their `policies`.",
      must: guardrailNameText,
      fix: "Give a name such as no-secrets.",
    }),
    kind: said(
      "What looks: `patterns` of your own, rules for `secrets` and personal data, a model as a `judge`, or a service over `http`.",
      oneOf(guardrailKinds),
    ),
    sides: field(
      z
        .array(said("A side.", oneOf(guardrailSides)))
        .min(1)
        .max(guardrailSides.length),
      list(
        "What it looks at.",
        "request and answer, with one entry at least",
        "Write [request], [answer] or [request, answer].",
      ),
    ).default([...guardrailSides]),
    action: said(
      "What is done with what it finds: `block` refuses or ends it, `mask` replaces what was found, `note` counts it and passes it on.",
      oneOf(guardrailActions),
    ).default("block"),
    patterns: field(
      z.array(pattern).min(1).max(maxPatterns),
      list(
        "Of `patterns`: what it looks for.",
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
      list("Of `secrets`: groups of rules. Left out: all of them.", "names of groups, with one entry at least"),
    ).optional(),
    model: field(z.string().max(maxModelIdLength).regex(printablePattern), {
      doc: "Of `judge`: id of the model that is asked.",
      must: "a model id of 1 to 256 printable ASCII characters without spaces",
      fix: "Give the id under which clients see it.",
    }).optional(),
    policy: field(z.string().trim().min(1).max(20_000), {
      doc: "Of `judge`: what may not pass, in words that the model understands.",
      must: "a text of 1 to 20000 characters",
      fix: "Write a sentence such as: Nothing about other customers.",
    }).optional(),
    url: field(
      z
        .string()
        .trim()
        .refine((text) => parseHttpUrl(text) !== undefined),
      {
        doc: "Of `http`: the address that each text is posted to.",
        must: "a URL that begins with http:// or https:// and has no user, password, query or fragment",
        fix: "Give a URL such as https://guard.example.com/check. Where it had a user or password: a credential goes under token.",
        quiet: true,
      },
    ).optional(),
    token: field(z.string().max(4_096).regex(printablePattern), {
      doc: `Of \`http\`: sent as a bearer token. Keep it out of the file: \`\${NAME}\` takes it from a variable. Left out: none is sent.`,
      must: "1 to 4096 printable ASCII characters without spaces or line breaks",
      fix: "Check the value for blanks and line breaks, or leave the key out if the service wants none.",
      quiet: true,
    }).optional(),
    local: said(
      "Of `http`: whether texts of keys with `never_leaves` may go there, as nothing that it is sent goes further. Left out: false.",
      trueOrFalse(),
    ).optional(),
    timeout_seconds: field(z.number().min(0.1).max(60), {
      doc: `Of \`judge\` and \`http\`: how long it may take. Left out: ${defaultTimeoutSeconds}.`,
      must: "a number of seconds from 0.1 to 60",
      fix: `Give a number such as ${defaultTimeoutSeconds}, or leave it out.`,
    }).optional(),
    otherwise: said(
      "Of `judge` and `http`: what happens where it does not answer in time, or not as it should. Left out: `block`.",
      oneOf(["pass", "block"]),
    ).optional(),
  }),
  entry("Looks at requests before a model gets them, and at answers before their client does.", "name and kind"),
);

export const guardrails = field(
  z.array(guardrail),
  list("What looks at requests and answers; models name it.", "guardrails"),
);

type FileGuardrail = z.output<typeof guardrail>;
type Member = keyof FileGuardrail;

/** What each kind has of its own: needed, or to be left out. */
const members: Readonly<Record<FileGuardrail["kind"], { needs: readonly Member[]; may: readonly Member[] }>> = {
  patterns: { needs: ["patterns"], may: [] },
  secrets: { needs: [], may: ["rules"] },
  judge: { needs: ["model", "policy"], may: ["timeout_seconds", "otherwise"] },
  http: { needs: ["url"], may: ["token", "local", "timeout_seconds", "otherwise"] },
};
const common: readonly Member[] = ["name", "kind", "sides", "action"];

/** What of it does not go together. `at` is its member. */
export function guardrailFault(given: FileGuardrail): { at: Member; message: string; fix: string } | undefined {
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

/** What keeps a pattern from being matched in linear time, or at all. */
function patternsFault(patterns: FileGuardrail["patterns"]): string | undefined {
  try {
    new PatternSet(patterns ?? []);
    return undefined;
  } catch (error) {
    if (error instanceof PatternFault) return error.message;
    throw error;
  }
}

/** One without a fault, in the names of the code. */
export function guardrailSettings(given: FileGuardrail): GuardrailSettings {
  const { name, kind, sides, action, timeout_seconds = defaultTimeoutSeconds, otherwise = "block" } = given;
  const common = { name, sides, action };
  const remote = { timeoutMs: Math.round(timeout_seconds * 1_000), otherwise };
  if (kind === "patterns") return { ...common, kind, patterns: given.patterns ?? [] };
  if (kind === "secrets") return { ...common, kind, rules: given.rules ?? [] };
  if (kind === "judge") return { ...common, kind, ...remote, model: given.model ?? "", policy: given.policy ?? "" };
  return { ...common, kind, ...remote, url: given.url ?? "", token: given.token ?? null, local: given.local ?? false };
}

const bound = (doc: string, [least, most, usual]: readonly [number, number, number]) =>
  said(doc, whole([least, most], usual, "bytes")).default(usual);

export const cache = field(
  z.strictObject({
    store: said(
      "Where answers are kept: in the `memory` of the server process, or in `redis`, for all replicas and over restarts.",
      oneOf(["memory", "redis"]),
    ).default("memory"),
    max_bytes: bound(
      "Most bytes of answers that are kept in memory, of each server process, beside `limits.held_bytes`; the longest unused go first. Vectors take a quarter of it beside.",
      [1_048_576, 68_719_476_736, 67_108_864],
    ),
    max_answer_bytes: bound("Largest answer that is kept.", [1_024, 67_108_864, 1_048_576]),
  }),
  mapping("Answers that are given again, of models with `cache` in their `policies`."),
);
