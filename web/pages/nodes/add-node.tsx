// The dialog that adds a node: the models that the node may serve, the command to run on its machine, and the wait
// until it has joined.
import { NativeSelect, Radio, Stack, TagsInput, Text } from "@mantine/core";
import { useState } from "react";
import { call, type Environment } from "../../api/client.ts";
import { type Change, useChange } from "../../api/queries.ts";
import type { CreatedNodeJoinToken, CreateNodeJoinTokenRequest } from "../../api/types.ts";
import { EnvironmentBoxes } from "../../parts/editing/environment-boxes.tsx";
import { problemOf } from "../../parts/editing/field-problem.ts";
import { Form } from "../../parts/editing/form.tsx";
import { useFirstProblem } from "../../parts/editing/use-first-problem.ts";
import { MakingDialog } from "../../parts/secrets/making-dialog.tsx";
import { everyModel } from "./approvals.ts";
import { JoinCommand } from "./join-command.tsx";
import { tokensPath } from "./use-node-change.ts";

interface AddNodeProps {
  opened: boolean;
  close(): void;
  /** Opens the node that joined. */
  show(id: string): void;
}

export function AddNode({ opened, close, show }: AddNodeProps) {
  const creation = useChange(
    (body: CreateNodeJoinTokenRequest) => call<CreatedNodeJoinToken>("POST", tokensPath, { body }),
    { stale: [tokensPath] },
  );
  return (
    <MakingDialog
      {...{ opened, close }}
      making={creation}
      title="Add a node"
      titleOf={() => "Join the machine"}
      form={(leave) => <NodeForm creation={creation} close={leave} />}
      isLong
    >
      {(created, leave) => <JoinCommand created={created} again={creation.reset} close={leave} show={show} />}
    </MakingDialog>
  );
}

interface NodeFormProps {
  creation: Change<CreateNodeJoinTokenRequest, CreatedNodeJoinToken>;
  close(): void;
}

type Serving = "nothing" | "all" | "some";

const lives: readonly [seconds: number, name: string][] = [
  [900, "15 minutes"],
  [3_600, "1 hour"],
  [86_400, "1 day"],
  [604_800, "7 days"],
];
const fieldNames = ["approved_models", "environments", "expires_in"];

function NodeForm({ creation, close }: NodeFormProps) {
  const [serving, setServing] = useState<Serving>("nothing");
  const [models, setModels] = useState<string[]>([]);
  const [environments, setEnvironments] = useState<Environment[]>(["live", "dev"]);
  const [life, setLife] = useState(3_600);
  const [missing, setMissing] = useState(false);
  const modelsProblem =
    missing && models.length === 0 ? "Enter at least one model." : problemOf(creation.error, "approved_models");
  const form = useFirstProblem(modelsProblem, ...fieldNames.slice(1).map((field) => problemOf(creation.error, field)));
  const submit = () => {
    if (serving === "some" && models.length === 0) return setMissing(true);
    const approved = { nothing: [], all: [everyModel], some: models }[serving];
    creation.mutate({ approved_models: approved, environments, expires_in: life });
  };
  return (
    <Form
      ref={form}
      sending={creation}
      fields={fieldNames}
      gap="lg"
      noValidate
      action="Create command"
      disabled={environments.length === 0}
      submit={submit}
      cancel={close}
      isHeld
    >
      <Text size="sm">
        The machine runs Headrace next to its models. It opens one connection to this server and needs no open port.
      </Text>
      <ServingChoice value={serving} change={setServing} />
      {serving === "some" && (
        <TagsInput
          label="Models"
          description="Model ids as the machine announces them."
          placeholder={models.length === 0 ? "qwen3:8b" : ""}
          value={models}
          onChange={(next) => {
            setMissing(false);
            setModels(next);
          }}
          splitChars={[",", ";", " ", "\n"]}
          acceptValueOnBlur
          maxTags={200}
          openOnFocus={false}
          error={modelsProblem}
        />
      )}
      <EnvironmentBoxes
        value={environments}
        change={setEnvironments}
        error={problemOf(creation.error, "environments")}
      />
      <NativeSelect
        label="Command valid for"
        description="The command works once within this time. The node stays until you remove it."
        value={String(life)}
        onChange={(event) => setLife(Number(event.currentTarget.value))}
        data={lives.map(([seconds, name]) => ({ value: String(seconds), label: name }))}
        error={problemOf(creation.error, "expires_in")}
      />
    </Form>
  );
}

function ServingChoice({ value, change }: { value: Serving; change(serving: Serving): void }) {
  return (
    <Radio.Group label="Models it may serve immediately" value={value} onChange={(chosen) => change(chosen as Serving)}>
      <Stack gap="xs" mt="xs">
        <Radio
          value="nothing"
          label="None before I approve them"
          description="You choose from the announced models later."
          data-autofocus
        />
        <Radio
          value="all"
          label="All announced models, now and later"
          description="Only for machines whose owners you trust: your users can call every model that is loaded there."
        />
        <Radio value="some" label="Selected models" description="All other announced models wait for approval." />
      </Stack>
    </Radio.Group>
  );
}
