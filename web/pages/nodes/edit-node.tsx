// Changes a node's name, access and concurrency.
import { Switch, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Node } from "../../api/types.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { numberOf, type TypedNumber } from "../../parts/editing/typed-number.ts";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";
import { RecordTitle } from "../../parts/page/section.tsx";
import { useNodeChange } from "./use-node-change.ts";

const fieldNames = ["name", "environments", "local", "max_concurrency"];

export function EditNode({ node, done }: { node: Node; done(): void }) {
  const [name, setName] = useState(node.name);
  const [environments, setEnvironments] = useState(node.environments);
  const [local, setLocal] = useState(node.local);
  const [most, setMost] = useState<TypedNumber>(node.max_concurrency ?? "");
  const save = useNodeChange(node.id, (changed) => `${changed.name} is saved.`, done);
  const form = useFirstProblem(...fieldNames.map((field) => problemOf(save.error, field)));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form takes the focus only when it opens
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  return (
    <Form
      ref={form}
      sending={save}
      fields={fieldNames}
      action="Save"
      disabled={environments.length === 0}
      submit={() => save.mutate({ name: name.trim(), environments, local, max_concurrency: numberOf(most) })}
      cancel={done}
    >
      <RecordTitle>{node.name}</RecordTitle>
      <TextInput
        label="Name"
        description="Lower-case letters, digits, dots, underscores and hyphens. Earlier usage and logs keep the old name."
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={problemOf(save.error, "name")}
        maxLength={63}
        autoComplete="off"
        spellCheck={false}
        required
      />
      <EnvironmentBoxes value={environments} change={setEnvironments} error={problemOf(save.error, "environments")} />
      <Switch
        label="Local server"
        description="Local-only keys may use this node. Turn this on only if the node never sends requests on to another server."
        checked={local}
        onChange={(event) => setLocal(event.currentTarget.checked)}
      />
      <WholeNumber
        label="Max concurrent requests"
        description="Further requests wait. Defaults to the announced number, or is measured automatically."
        value={most}
        onChange={setMost}
        max={1_000_000}
        error={problemOf(save.error, "max_concurrency")}
      />
    </Form>
  );
}
