// Chooses which announced models a node may serve: some, or all, now and later.
import { Button, Checkbox, Group, List, Stack, Switch, Text } from "@mantine/core";
import { useState } from "react";
import { abilities } from "../../api/models.ts";
import type { Node, NodeModel } from "../../api/types.ts";
import { PlainButton } from "../../parts/page/buttons.tsx";
import { Failure } from "../../parts/page/failure.tsx";
import { count } from "../../parts/words/figures.ts";
import { Note, SmallNote } from "../../parts/words/note.tsx";
import { everyModel, isEvery, isSame, modelIdsOf } from "./approvals.ts";
import { modelCount } from "./node-state.tsx";
import { useNodeChange } from "./use-node-change.ts";

export function ApproveModels({ node }: { node: Node }) {
  const { id, announced_models: announced, approved_models: approved } = node;
  // The user's choice; undefined while the user has changed nothing, so that changes on the server show.
  const [wanted, setWanted] = useState<readonly string[]>();
  const chosen = wanted ?? approved;
  const isAll = isEvery(chosen);
  const ids = modelIdsOf(announced, [...approved, ...chosen]);
  const save = useNodeChange(id, servesText, () => setWanted(undefined));
  const change = (next: readonly string[]) => {
    save.reset();
    setWanted(isSame(next, approved) ? undefined : next);
  };
  return (
    <Stack gap="sm">
      <Switch
        label="All announced models, now and later"
        description="Includes models that are loaded there later. Only for machines whose owners you trust."
        checked={isAll}
        onChange={(event) =>
          change(
            event.currentTarget.checked ? [everyModel] : isEvery(approved) ? announced.map((one) => one.id) : approved,
          )
        }
      />
      {ids.length === 0 && <Note>{noModelsText(node)}</Note>}
      {isAll && announced.length > 0 && <Announced models={announced} />}
      {!isAll && ids.length > 0 && (
        <Checkbox.Group
          label="Approved models"
          value={[...chosen]}
          onChange={(next) => change(ids.filter((one) => next.includes(one)))}
        >
          <Stack gap="xs" mt="xs">
            {ids.map((one) => (
              <Checkbox
                key={one}
                value={one}
                label={one}
                description={aboutModel(announced.find((model) => model.id === one))}
                style={{ overflowWrap: "anywhere" }}
              />
            ))}
          </Stack>
        </Checkbox.Group>
      )}
      {save.error && <Failure error={save.error} />}
      <Group gap="xs">
        <Button
          disabled={wanted === undefined}
          loading={save.isPending}
          onClick={() => wanted && save.mutate({ approved_models: [...wanted] })}
        >
          {approved.length === 0 ? "Approve" : "Save"}
        </Button>
        {!isAll && announced.length > 1 && announced.some((model) => !chosen.includes(model.id)) && (
          <PlainButton onClick={() => change(ids)}>Choose all {count(ids.length)}</PlainButton>
        )}
        {wanted && (
          <Button variant="subtle" onClick={() => setWanted(undefined)}>
            Discard changes
          </Button>
        )}
      </Group>
    </Stack>
  );
}

function Announced({ models }: { models: readonly NodeModel[] }) {
  return (
    <div>
      <Text size="sm" fw={500} id="announced">
        Announced now
      </Text>
      <List aria-labelledby="announced" listStyleType="none" size="sm" mt={4} spacing={4}>
        {models.map((model) => (
          <List.Item key={model.id} style={{ overflowWrap: "anywhere" }}>
            {model.id}
            <SmallNote>{aboutModel(model)}</SmallNote>
          </List.Item>
        ))}
      </List>
    </div>
  );
}

function servesText({ name, approved_models: approved, announced_models: announced }: Node): string {
  if (isEvery(approved)) return `${name} may serve all announced models.`;
  const served = announced.filter((model) => model.approved).length;
  return served === 0 ? `${name} now serves no models.` : `${name} now serves ${modelCount(served)}.`;
}

function noModelsText({ connected_at: connected }: Node): string {
  return connected === null
    ? "The node has not connected yet. Its models appear here after it connects."
    : "The node announces no models yet. Models appear here when it announces them.";
}

function aboutModel(model: NodeModel | undefined): string {
  if (!model) return "Not announced at the moment";
  const can = abilities.filter((use) => model.capabilities?.[use]);
  const context = model.context === null ? [] : [`context of ${count(model.context)} tokens`];
  const text = [...can, ...context].join(", ");
  return text === "" ? "Abilities unknown" : text.charAt(0).toUpperCase() + text.slice(1);
}
