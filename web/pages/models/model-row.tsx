// One model: its abilities and price, and the state of each deployment.
import { Box, Group, Progress, Stack, Text, Title } from "@mantine/core";
import { memo } from "react";
import { abilitiesOf, abilityNames, mainAbilityOf } from "../../api/models.ts";
import type { DeploymentStatus, ManagedModel, ModelStatus } from "../../api/types.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { PlainLinkButton } from "../../parts/page/links.tsx";
import { CopyAction } from "../../parts/secrets/copy.tsx";
import { percentileText } from "../../parts/usage/percentile-text.ts";
import { environmentList } from "../../parts/words/environments.ts";
import { count, duration, perSecond } from "../../parts/words/figures.ts";
import { SmallNote } from "../../parts/words/note.tsx";
import { Tag } from "../../parts/words/tag.tsx";
import { DeploymentState } from "./deployment-state.tsx";
import { priceText, sourceNames } from "./managed-words.ts";
import { processWords } from "./process-words.ts";

interface ModelRowProps {
  model: ModelStatus;
  /** The operators' data of the model. */
  managed: ManagedModel | undefined;
  /** True if the model is available in the chosen environment. */
  isHere: boolean;
  show(id: string): void;
}

/** Memoized: a row is rendered again only if the server reports a change of its model. */
export const ModelRow = memo(function ModelRow({ model, managed, isHere, show }: ModelRowProps) {
  const { id, context_length, price, deployments } = model;
  const known = abilitiesOf(model);
  const guess = mainAbilityOf(model);
  return (
    <Box component="li" className="model-row">
      <Stack gap={4} miw={0}>
        <Group gap={4} wrap="nowrap">
          <Title order={2} size="md" style={{ overflowWrap: "anywhere" }}>
            {id}
          </Title>
          <CopyAction value={id} label={`Copy the id ${id}`} />
        </Group>
        <Group gap={6} className="model-abilities">
          {known.map((use) => (
            <Tag key={use}>{abilityNames[use]}</Tag>
          ))}
          {known.length === 0 && (
            <SmallNote>
              {guess ? `Probably ${abilityNames[guess].toLowerCase()} (not declared)` : "Abilities unknown"}
            </SmallNote>
          )}
          <SmallNote className="numeric">
            {context_length === undefined ? "Context unknown" : `${count(context_length)} tokens of context`}
          </SmallNote>
        </Group>
        <SmallNote style={{ whiteSpace: "normal" }}>{price || managed ? priceText(price) : "No price: free"}</SmallNote>
        {managed && <SmallNote>{sourceNames[managed.source]}</SmallNote>}
      </Stack>
      <Stack component="ul" gap="xs" className="model-places" aria-label={`Deployments of ${id}`}>
        {deployments.map((deployment) => (
          <DeploymentLine key={`${deployment.upstream} ${deployment.model}`} deployment={deployment} of={id} />
        ))}
        {deployments.length === 0 && (
          <Text component="li" size="sm" c="dimmed">
            {isHere || managed?.status === "nowhere"
              ? "Not served at the moment"
              : `Not available in this environment, only in ${environmentList(managed?.environments ?? [])}`}
          </Text>
        )}
      </Stack>
      <Group gap="xs" className="model-actions">
        {isHere && (
          <PlainLinkButton href={`/playground?model=${encodeURIComponent(id)}`} size="xs" aria-label={`Try ${id}`}>
            Try
          </PlainLinkButton>
        )}
        {managed && (
          <SmallButton aria-label={`Details of ${id}`} onClick={() => show(id)}>
            Details
          </SmallButton>
        )}
      </Group>
    </Box>
  );
});

const kinds: Record<DeploymentStatus["kind"], string | null> = {
  "built-in": "on this server",
  configured: null,
  found: "found on this machine",
  node: "on a node",
};

function DeploymentLine({ deployment, of }: { deployment: DeploymentStatus; of: string }) {
  const { upstream, kind, model, state, process, running, waiting, concurrency, attempts } = deployment;
  const processText = process === null ? null : processWords[process].toLowerCase();
  const more = [kinds[kind], model === of ? null : `as ${model}`, processText]
    .filter((part) => part !== null)
    .join(", ");
  return (
    <li className="model-place">
      <div>
        <Text size="sm" fw={500} style={{ overflowWrap: "anywhere" }}>
          {upstream}
        </Text>
        {more !== "" && <SmallNote style={{ overflowWrap: "anywhere" }}>{more}</SmallNote>}
      </div>
      <DeploymentState state={state} />
      <div>
        <Text size="sm" className="numeric">
          {count(running)} {concurrency === null ? "running" : `of ${count(concurrency)} running`}
        </Text>
        {concurrency !== null && concurrency > 0 && (
          <Progress value={Math.min(100, (100 * running) / concurrency)} size={3} maw={110} my={2} aria-hidden="true" />
        )}
        <Text size="xs" fw={waiting > 0 ? 600 : 400} className="numeric" {...(waiting > 0 ? {} : { c: "dimmed" })}>
          {count(waiting)} waiting
        </Text>
        {waiting > 0 && <SmallNote>{lineWords(deployment)}</SmallNote>}
      </div>
      <Speed deployment={deployment} />
      {attempts?.failing && <SmallNote className="model-note">{attempts.summary}</SmallNote>}
    </li>
  );
}

/** Formats the queue by priority, with the expected wait of a new request: `2 high, 9 normal (about 4 s)`. */
function lineWords({ waiting_by_priority: counts, expected_wait_ms: waits }: DeploymentStatus): string {
  const lines = (["high", "normal", "low"] as const).flatMap((priority) => {
    const ms = waits[priority];
    const wait = ms === null ? "" : ` (about ${count(Math.max(1, Math.round(ms / 1000)))} s)`;
    return counts[priority] > 0 ? [`${count(counts[priority])} ${priority}${wait}`] : [];
  });
  return lines.join(", ");
}

function Speed({ deployment }: { deployment: DeploymentStatus }) {
  const { tokens_per_second, first_token_ms, percentiles } = deployment;
  if (tokens_per_second === null && first_token_ms === null) {
    return <SmallNote>No speed measured yet</SmallNote>;
  }
  const mean = first_token_ms === null ? null : `${duration(first_token_ms)} on average`;
  const firstToken = [mean, percentiles && percentileText(percentiles.first_token_ms)].filter(Boolean).join(", ");
  return (
    <>
      <div>
        {tokens_per_second !== null && (
          <Text size="sm" className="numeric">
            {perSecond(tokens_per_second)} tokens/s
          </Text>
        )}
      </div>
      {firstToken !== "" && <SmallNote className="model-note">First token: {firstToken}</SmallNote>}
      {percentiles && (
        <SmallNote className="model-note">Whole answer: {percentileText(percentiles.total_ms)}</SmallNote>
      )}
    </>
  );
}
