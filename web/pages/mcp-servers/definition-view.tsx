// One tool or prompt as its server describes it now, the differences from the approved version, and the decision.
import { Alert, Button, Code, Group, Stack, Text } from "@mantine/core";
import { AlertIcon, CheckIcon, CircleSlashIcon } from "@primer/octicons-react";
import type { ToolDefinition } from "../../api/types.ts";
import { MoreSettings } from "../../parts/editing/more-settings.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { counted } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { hidesSomething, VisibleText } from "../../parts/words/visible-text.tsx";
import { type DefinitionPart, hostsIn, partsOf } from "./definition-parts.ts";
import { Difference } from "./difference.tsx";
import { wordsFor } from "./mcp-server-words.tsx";
import { type Decision, useDecision } from "./use-decision.ts";

export function DefinitionView({ definition }: { definition: ToolDefinition }) {
  const { server, kind, name, state, approved, seen_at: seenAt, decided_at: decidedAt } = definition;
  const parts = partsOf(definition);
  const changed = approved === null ? [] : parts.filter((part) => part.now !== part.approved);
  const others = parts.filter((part) => !changed.includes(part));
  return (
    <Stack gap="sm">
      <Warnings name={name} parts={parts} />
      {changed.map((part) => (
        <Part key={part.label} label={part.label}>
          <Difference label={part.label} before={part.approved} after={part.now} isCode={part.isCode} />
        </Part>
      ))}
      {changed.length > 0 && others.length > 0 && (
        <MoreSettings label="Unchanged parts" shown={false} hasProblem={false}>
          <Parts parts={others} />
        </MoreSettings>
      )}
      {changed.length === 0 && <Parts parts={others} />}
      {definition.approved_others > 0 && (
        <SmallNote>
          {counted(definition.approved_others, "other version")} approved, because the server can describe it
          differently to each person.{" "}
          {state === "approved"
            ? "If you refuse this version, all versions are refused."
            : "Your decision here does not affect other versions."}
        </SmallNote>
      )}
      <Group justify="space-between" gap="xs">
        <Decisions definition={definition} />
        {kind === "tool" && (
          <PlainLink href={`/requests?model=${encodeURIComponent(`${server}/${name}`)}`}>Calls in Logs</PlainLink>
        )}
      </Group>
      <SmallNote>
        {state === "approved" || decidedAt === null ? "First seen " : "Seen "}
        <Ago seconds={seenAt} />
        {decidedAt !== null && (
          <>
            ; last decided <Ago seconds={decidedAt} />
          </>
        )}
        .
      </SmallNote>
    </Stack>
  );
}

function Warnings({ name, parts }: { name: string; parts: readonly DefinitionPart[] }) {
  const hosts = hostsIn(parts);
  const texts = [{ label: "Name", now: name }, ...parts];
  const hidden = texts.filter(({ now }) => hidesSomething(now)).map(({ label }) => label.toLowerCase());
  if (hosts.length + hidden.length === 0) return null;
  return (
    <Alert icon={<AlertIcon />} color="yellow" title="Check this text: models read all of it">
      {hidden.length > 0 && (
        <div>The text has invisible characters ({hidden.join(", ")}). They are shown as codes, such as U+200B.</div>
      )}
      {hosts.length > 0 && (
        <div style={{ overflowWrap: "anywhere" }}>
          The text contains addresses at{" "}
          <bdi>
            <VisibleText>{hosts.join(", ")}</VisibleText>
          </bdi>
          .
        </div>
      )}
    </Alert>
  );
}

function Parts({ parts }: { parts: readonly DefinitionPart[] }) {
  if (parts.length === 0) return <SmallNote>The server gives no description.</SmallNote>;
  return parts.map(({ label, now, isCode }) => (
    <Part key={label} label={label}>
      {isCode ? (
        <Code block tabIndex={0} aria-label={label} mah="20rem" className="told">
          <VisibleText>{now}</VisibleText>
        </Code>
      ) : (
        <Text size="sm" className="told" dir="auto">
          <VisibleText>{now}</VisibleText>
        </Text>
      )}
    </Part>
  ));
}

function Part({ label, children }: { label: string; children: React.ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed" mb={2}>
        {label}
      </Text>
      {children}
    </div>
  );
}

function Decisions({ definition }: { definition: ToolDefinition }) {
  const { state } = definition;
  const words = wordsFor(definition);
  const decide = useDecision(definition.server);
  const take = (decision: Decision) => decide.mutate({ definitions: [definition], decision });
  return (
    <Stack gap="xs">
      <Group gap="xs">
        {state !== "approved" && (
          <Button
            size="xs"
            leftSection={<CheckIcon />}
            loading={decide.isPending}
            onClick={() => take("approved")}
            aria-label={`Approve ${words}`}
          >
            Approve
          </Button>
        )}
        {state !== "refused" && (
          <PlainButton
            size="xs"
            leftSection={<CircleSlashIcon />}
            disabled={decide.isPending}
            onClick={() => take("refused")}
            aria-label={`Refuse ${words}`}
          >
            Refuse
          </PlainButton>
        )}
      </Group>
      {decide.error && <Failure error={decide.error} />}
    </Stack>
  );
}
