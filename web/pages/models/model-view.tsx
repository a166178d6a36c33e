// One model: price, abilities, deployments, source and actions.
import { Alert, Group, Stack, Text, Title } from "@mantine/core";
import { AlertIcon, InfoIcon, PencilIcon } from "@primer/octicons-react";
import type { ManagedModel } from "../../api/types.ts";
import { Removal } from "../../parts/editing/removal.tsx";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { PlainLink } from "../../parts/page/links.tsx";
import { RecordTitle } from "../../parts/page/section.tsx";
import { Ago } from "../../parts/words/ago.tsx";
import { environmentList } from "../../parts/words/environments.ts";
import { Facts } from "../../parts/words/facts.tsx";
import { count } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { State } from "../../parts/words/state.tsx";
import { Comparisons } from "./comparisons.tsx";
import { managedPathOf, staleWithModels } from "./managed-models.ts";
import { abilityText, placeStates, sourceNames, statusNames } from "./managed-words.ts";
import { ModelPolicies } from "./policies/model-policies.tsx";
import { ModelPrice } from "./prices/model-price.tsx";

interface ModelViewProps {
  model: ManagedModel;
  /** The ids of existing models. */
  ids: readonly string[];
  close(): void;
  edit(): void;
}

export function ModelView({ model, ids, close, edit }: ModelViewProps) {
  const { id, source, status, overrides_database: hidesOne, fallbacks } = model;
  const [kind, word] = statusNames[status];
  const strangers = fallbacks.filter((fallback) => !ids.includes(fallback));
  return (
    <Stack gap="lg">
      <Group justify="space-between" wrap="nowrap" align="start">
        <RecordTitle>{id}</RecordTitle>
        <State kind={kind}>{word}</State>
      </Group>
      {status === "nowhere" && (
        <Alert icon={<AlertIcon />} color="red" title="No upstream serves this model">
          {model.deployments.length > 0
            ? "Its upstreams were removed. Requests for this model fail with status 503, unless it has a fallback model. Choose other upstreams, or add the upstream again."
            : "No upstream lists a model with this id at the moment. Add deployments, or remove the model."}
        </Alert>
      )}
      {source === "file" && (
        <Alert icon={<InfoIcon />} color="gray">
          This model is set in headrace.yaml and read-only here. Change it under models in that file.
          {hidesOne &&
            " The dashboard has settings for the same id. They have no effect while the file has this model."}
        </Alert>
      )}
      <Facts facts={factsOf(model)} />
      <ModelPrice model={model} />
      <DeploymentList model={model} />
      <ModelPolicies model={model} />
      {status === "ok" && <Comparisons model={id} />}
      {strangers.length > 0 && (
        <Note>
          {strangers.join(", ")} {strangers.length === 1 ? "is" : "are"} not available at the moment, and cannot be used
          as a fallback.
        </Note>
      )}
      <Group gap="xs">
        {source !== "file" && (
          <PlainButton leftSection={<PencilIcon />} onClick={edit}>
            {model.price === null ? "Set price and more" : "Edit"}
          </PlainButton>
        )}
        {(source === "database" || hidesOne) && <RemoveModel model={model} close={close} />}
      </Group>
    </Stack>
  );
}

function DeploymentList({ model: { id, deployments } }: { model: ManagedModel }) {
  const weights = deployments.reduce((total, { weight }) => total + weight, 0);
  if (deployments.length === 0) return null;
  return (
    <div>
      <Title order={3} size="sm" mb="xs">
        Served by
      </Title>
      <Stack component="ul" gap="xs" className="model-places">
        {deployments.map(({ upstream, model, weight, state, listed, attempts }) => (
          <Group component="li" key={`${upstream} ${model}`} justify="space-between" align="start" gap="xs">
            <div style={{ overflowWrap: "anywhere", minWidth: 0 }}>
              {state === "missing" ? (
                <Text size="sm">{upstream}</Text>
              ) : (
                <PlainLink href={`/admin/upstreams?upstream=${encodeURIComponent(upstream)}`}>{upstream}</PlainLink>
              )}
              <SmallNote>
                {[
                  model === id ? "same id" : `as ${model}`,
                  ...(deployments.length > 1 ? [`${Math.round((100 * weight) / weights)} % of the requests`] : []),
                  ...(listed === false ? ["not in its list of models"] : []),
                ].join(", ")}
              </SmallNote>
              {attempts?.failing && <SmallNote>{attempts.summary}</SmallNote>}
            </div>
            <State kind={placeStates[state][0]}>{placeStates[state][1]}</State>
          </Group>
        ))}
      </Stack>
    </div>
  );
}

function factsOf(model: ManagedModel) {
  const {
    source,
    context_length: context,
    shutdown_date: end,
    environments,
    owned_by: owner,
    fallbacks,
    aliases,
    created_at: at,
  } = model;
  return [
    ["Can do", abilityText(model)],
    ["Context", context === null ? "unknown" : `${count(context)} tokens`],
    ...(end === null ? [] : [["Shuts down", `${end} (UTC)`] as const]),
    ["Environments", environmentList(environments) || "none"],
    ["Fallback models", fallbacks.join(", ") || "none"],
    ["Aliases", aliases.join(", ") || "none"],
    ["Owner", owner ?? "unknown"],
    ["Source", sourceNames[source]],
    ...(at === null ? [] : [["Since", <Ago key="declared" seconds={at} />] as const]),
  ] as const;
}

function RemoveModel({ model, close }: { model: ManagedModel; close(): void }) {
  const { id, overrides_database: isHidden, settings } = model;
  const deploymentCount = settings?.deployments?.length ?? 0;
  return (
    <Removal
      {...{ name: id, path: managedPathOf(id), stale: staleWithModels, close }}
      {...(isHidden ? { label: "Remove dashboard settings" } : {})}
      action="Remove model"
      done={`The dashboard settings of ${id} were removed.`}
    >
      {isHidden
        ? "The dashboard settings of this model are removed. The model in headrace.yaml stays unchanged."
        : `The price and all other settings of this model are removed. ${
            deploymentCount > 0
              ? "The model can no longer be called, unless an upstream lists the same id."
              : "The model stays available as its upstreams list it, but its usage is not counted as spend."
          } Running requests are completed. Past usage is kept.`}
    </Removal>
  );
}
