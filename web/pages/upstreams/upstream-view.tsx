// One model server: its state, settings, test and actions.
import { Alert, Group, Stack, Title } from "@mantine/core";
import { AlertIcon, BeakerIcon, InfoIcon, PencilIcon, PlusIcon } from "@primer/octicons-react";
import { useState } from "react";
import { call } from "../../api/client.ts";
import { useChange } from "../../api/queries.ts";
import type { Upstream, UpstreamTest } from "../../api/types.ts";
import { Draining } from "../../parts/editing/draining.tsx";
import { Removal } from "../../parts/editing/removal.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { PlainLinkButton } from "../../parts/page/links.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { count, counted, span } from "../../parts/words/figures.ts";
import { Note } from "../../parts/words/note.tsx";
import { EditUpstream } from "./edit-upstream.tsx";
import { TestResult } from "./test-result.tsx";
import { UnpricedModels } from "./unpriced-models.tsx";
import { staleWithUpstreams, upstreamPath, upstreamsPath } from "./upstream-paths.ts";
import { addressOf, apiNames, readOnlyText, sourceNames, UpstreamState } from "./upstream-state.tsx";

export function UpstreamView({ upstream, close }: { upstream: Upstream; close(): void }) {
  const [editing, setEditing] = useState(false);
  const { name, url, source, state, error, attempts, overrides_database: hidesOne } = upstream;
  const test = useChange(() => call<UpstreamTest>("POST", "/v1/admin/upstream-tests", { body: { name } }), {
    stale: [upstreamsPath],
  });
  if (editing) return <EditUpstream upstream={upstream} done={() => setEditing(false)} />;
  const note = readOnlyText[source];
  return (
    <Stack gap="lg">
      <Group justify="space-between">
        <div style={{ overflowWrap: "anywhere" }}>
          <Title order={2}>{name}</Title>
          <Note>{addressOf(upstream)}</Note>
        </div>
        <UpstreamState upstream={upstream} />
      </Group>
      {error !== null && state !== "draining" && (
        <Alert icon={<AlertIcon />} color="red" title="This upstream cannot be reached">
          {error} Requests go to other upstreams with the same model. The connection is checked every 30 seconds.
        </Alert>
      )}
      {attempts?.failing && (
        <Alert icon={<AlertIcon />} color="red" title={failingTitle(attempts.failing_models)}>
          {attempts.summary}. Requests go to other upstreams with the same model. The next request that succeeds ends
          this state.
        </Alert>
      )}
      {note && (
        <Alert icon={<InfoIcon />} color="gray">
          {note}
          {hidesOne &&
            " An upstream with the same name was added in the dashboard. It has no effect while the file has this name."}
        </Alert>
      )}
      <Facts facts={factsOf(upstream)} />
      <UnpricedModels upstream={name} />
      <Group gap="xs">
        <PlainButton leftSection={<BeakerIcon />} loading={test.isPending} onClick={() => test.mutate(undefined)}>
          Test
        </PlainButton>
        <DrainUpstream upstream={upstream} />
        {source === "node" && (
          <PlainLinkButton href={`/admin/nodes?node=${encodeURIComponent(name)}`}>Show the node</PlainLinkButton>
        )}
        {source === "found" && url !== null && (
          <PlainLinkButton href={`/admin/upstreams?new=&url=${encodeURIComponent(url)}`} leftSection={<PlusIcon />}>
            Add under a name
          </PlainLinkButton>
        )}
        {source === "database" && (
          <PlainButton leftSection={<PencilIcon />} onClick={() => setEditing(true)}>
            Edit
          </PlainButton>
        )}
        {(source === "database" || hidesOne) && <RemoveUpstream upstream={upstream} close={close} />}
      </Group>
      {test.data && <TestResult result={test.data} />}
      {test.error && <Failure error={test.error} />}
    </Stack>
  );
}

function failingTitle(models: readonly string[]): string {
  return models.length === 0 ? "This upstream fails requests" : `This upstream fails requests for ${models.join(", ")}`;
}

function factsOf(upstream: Upstream) {
  const { url, source, models, running, waiting, concurrency, max_concurrency: most } = upstream;
  const { has_api_key: hasKey, discover, environments, created_at: createdAt } = upstream;
  const { timeout_seconds: timeout, idle_seconds: idle, attempts } = upstream;
  const ofLimit = concurrency === null ? "" : ` of ${count(concurrency)}`;
  return [
    ["Running now", `${count(running)}${ofLimit}`],
    ["Waiting", count(waiting)],
    ...(attempts && !attempts.failing ? [["Requests", attempts.summary] as const] : []),
    ["Models", discover ? count(models) : `${count(models)}, listed models are not served`],
    ["Max concurrency", most === null ? "measured" : count(most)],
    ["Formats", upstream.apis.map((api) => apiNames[api]).join(", ")],
    ["Source", sourceNames[source]],
    ["Local server", upstream.local ? "yes" : "no, not used for local-only keys"],
    ["Environments", environmentList(environments)],
    ...(url === null ? [] : [["API key", hasKey ? "stored encrypted" : "none"] as const]),
    ...(timeout === null ? [] : [["Response timeout", span(timeout)] as const]),
    ...(idle === null ? [] : [["Idle timeout", span(idle)] as const]),
    ...(createdAt === null ? [] : [["Added", <Ago key="added" seconds={createdAt} />] as const]),
  ] as const;
}

function DrainUpstream({ upstream: { name, state, running } }: { upstream: Upstream }) {
  return (
    <Draining
      {...{ name, running }}
      isDraining={state === "draining"}
      stale={staleWithUpstreams}
      change={(isDraining) => call("PATCH", upstreamPath(name), { body: { draining: isDraining } })}
      purpose="so that you can update or stop it"
    >
      Requests for its models go to other upstreams. If no other upstream has a model, its requests fail with status
      503. The upstream stays drained, even after a restart, until you resume it.
    </Draining>
  );
}

function RemoveUpstream({ upstream, close }: { upstream: Upstream; close(): void }) {
  const { name, models, running, has_api_key: hasKey, overrides_database: isHidden } = upstream;
  return (
    <Removal
      {...{ name, path: upstreamPath(name), stale: staleWithUpstreams, close }}
      {...(isHidden ? { label: "Remove dashboard upstream" } : {})}
      action="Remove upstream"
      done={`The upstream ${name} was removed.`}
    >
      {isHidden
        ? "The upstream that was added in the dashboard is removed. The upstream in headrace.yaml stays unchanged."
        : `Its ${models === 1 ? "model" : `${count(models)} models`} can no longer be called, unless another upstream has them.${
            running === 0 ? "" : ` ${counted(running, "running request")} will be completed.`
          }${hasKey ? " Its API key is deleted." : ""}`}
    </Removal>
  );
}
