// The other models that get a share of a model's requests: as shadow or in a split.
import { NumberInput, Select, Text } from "@mantine/core";
import { PlusIcon, TrashIcon } from "@primer/octicons-react";
import type { ReactNode } from "react";
import type { ApiFailure } from "../../../api/client.ts";
import { problemAt } from "../../../parts/editing/field-problem.ts";
import { PlainButton, SmallButton } from "../../../parts/page/buttons.tsx";
import type { FormShare } from "./policy-form.ts";

interface ShadowFieldsProps {
  shadow: FormShare;
  /** The ids of the other models. */
  ids: readonly string[];
  error: ApiFailure | null;
  change(shadow: FormShare): void;
}

export function ShadowFields({ shadow, ids, error, change }: ShadowFieldsProps) {
  return <Share {...{ ids, error, change, share: shadow }} at="policies.shadow" label="Shadow model" />;
}

interface SplitFieldsProps {
  split: readonly FormShare[];
  ids: readonly string[];
  error: ApiFailure | null;
  change(split: FormShare[]): void;
}

const maxParts = 8;

export function SplitFields({ split, ids, error, change }: SplitFieldsProps) {
  const key = Math.max(-1, ...split.map((one) => one.key)) + 1;
  const problem = error?.message.startsWith("policies.split: ") ? problemAt(error, "policies.split") : undefined;
  return (
    <>
      {split.map((share, index) => (
        <Share
          key={share.key}
          {...{ ids, error, share }}
          at={`policies.split[${index}]`}
          label="Split model"
          change={(changed) => change(split.map((one) => (one === share ? changed : one)))}
        >
          <PlainButton
            onClick={() => change(split.filter((one) => one !== share))}
            aria-label={`Remove share ${index + 1}`}
            px="xs"
          >
            <TrashIcon />
          </PlainButton>
        </Share>
      ))}
      {problem && (
        <Text size="sm" c="var(--mantine-color-error)" role="alert">
          {problem}
        </Text>
      )}
      {split.length < maxParts && (
        <SmallButton
          leftSection={<PlusIcon />}
          onClick={() => change([...split, { key, model: "", percent: 10 }])}
          style={{ alignSelf: "start" }}
        >
          Add a share
        </SmallButton>
      )}
    </>
  );
}

interface ShareProps {
  share: FormShare;
  ids: readonly string[];
  /** The path of the field in the API. */
  at: string;
  label: string;
  error: ApiFailure | null;
  change(share: FormShare): void;
  children?: ReactNode;
}

function Share({ share, ids, at, label, error, change, children }: ShareProps) {
  return (
    <div className="model-share-fields">
      <Select
        label={label}
        data={[...new Set([...ids, ...(share.model === "" ? [] : [share.model])])]}
        value={share.model === "" ? null : share.model}
        onChange={(model) => change({ ...share, model: model ?? "" })}
        searchable
        comboboxProps={{ keepMounted: false }}
        error={problemAt(error, `${at}.model`)}
      />
      <NumberInput
        label="Share"
        value={share.percent}
        onChange={(percent) => change({ ...share, percent })}
        suffix=" %"
        min={0}
        max={100}
        allowNegative={false}
        hideControls
        error={problemAt(error, `${at}.percent`)}
      />
      {children}
    </div>
  );
}
