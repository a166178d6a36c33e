// The form fields for the location of a declared model: any upstream that has the model, or chosen deployments.
import { Fieldset, Group, NativeSelect, Stack, Text, TextInput } from "@mantine/core";
import { PlusIcon, TrashIcon } from "@primer/octicons-react";
import { useList } from "../../api/queries.ts";
import type { Upstream } from "../../api/types.ts";
import { WholeNumber } from "../../parts/editing/whole-number.tsx";
import { PlainButton, SmallButton } from "../../parts/page/buttons.tsx";
import { Note } from "../../parts/words/note.tsx";
import type { FormDeployment } from "./model-form.ts";

interface DeploymentFieldsProps {
  deployments: readonly FormDeployment[];
  /** True for a new model, which has no id yet by which upstreams could be searched. */
  isNew: boolean;
  error: string | undefined;
  change(deployments: FormDeployment[]): void;
}

export function DeploymentFields({ deployments, isNew, error, change }: DeploymentFieldsProps) {
  const upstreams = useList<Upstream>("/v1/admin/upstreams").items.map(({ name }) => name);
  const key = Math.max(-1, ...deployments.map((one) => one.key)) + 1;
  const add = () => change([...deployments, { key, upstream: upstreams[0] ?? "", model: "", weight: 1 }]);
  const set = (changed: FormDeployment) => change(deployments.map((one) => (one.key === changed.key ? changed : one)));
  return (
    <Fieldset legend="Served by">
      <Stack>
        {deployments.length === 0 && (
          <Note>
            {isNew
              ? "Without deployments, every upstream that lists this model id serves it. For a new name, add a deployment with the id that the model has there."
              : "Every upstream or node that lists this model id serves it, and the built-in engine if it has the model."}
          </Note>
        )}
        {deployments.map((deployment, index) => (
          <OneDeployment
            key={deployment.key}
            deployment={deployment}
            number={index + 1}
            hasOthers={deployments.length > 1}
            // An upstream that is gone stays selectable until another is chosen.
            upstreams={[...new Set([...upstreams, deployment.upstream])]}
            change={set}
            remove={() => change(deployments.filter((one) => one !== deployment))}
          />
        ))}
        {error && (
          <Text size="sm" c="var(--mantine-color-error)" role="alert">
            {error}
          </Text>
        )}
        <Group>
          <SmallButton leftSection={<PlusIcon />} onClick={add}>
            Add deployment
          </SmallButton>
        </Group>
      </Stack>
    </Fieldset>
  );
}

interface PlaceProps {
  deployment: FormDeployment;
  number: number;
  hasOthers: boolean;
  upstreams: string[];
  change(deployment: FormDeployment): void;
  remove(): void;
}

function OneDeployment({ deployment, number, hasOthers, upstreams, change, remove }: PlaceProps) {
  return (
    <div className="model-place-fields">
      <NativeSelect
        label="Upstream"
        data={upstreams}
        value={deployment.upstream}
        onChange={(event) => change({ ...deployment, upstream: event.currentTarget.value })}
      />
      <TextInput
        label="Model id there"
        placeholder="same id"
        value={deployment.model}
        onChange={(event) => change({ ...deployment, model: event.currentTarget.value })}
        maxLength={256}
        autoComplete="off"
        spellCheck={false}
      />
      {hasOthers && (
        <WholeNumber
          label="Weight"
          value={deployment.weight}
          onChange={(weight) => change({ ...deployment, weight })}
          max={1_000_000}
        />
      )}
      <PlainButton onClick={remove} aria-label={`Remove deployment ${number}`} px="xs">
        <TrashIcon />
      </PlainButton>
    </div>
  );
}
