// The field for a list of tools: all offered, only the named, or none.
import { NativeSelect, Stack, TagsInput } from "@mantine/core";
import { useState } from "react";
import { separate } from "../editing/separate.ts";
import { type ToolList, useToolEntries } from "./tool-entries.ts";

interface ToolListFieldProps {
  label?: string;
  description: string;
  value: ToolList;
  change(tools: ToolList): void;
  error?: string | undefined;
  /** The tools to suggest: the user's own, or those of the whole installation. */
  suggest?: "own" | "installation";
}

type Kind = "all" | "some" | "none";

const kinds = [
  { value: "all", label: "All available tools" },
  { value: "some", label: "Selected tools" },
  { value: "none", label: "None" },
];

export function ToolListField(props: ToolListFieldProps) {
  const { label = "Tools", description, value, change, error, suggest = "own" } = props;
  const [kind, setKind] = useState<Kind>(kindOf(value));
  const suggested = useToolEntries(suggest, kind === "some");
  const choose = (chosen: string) => {
    const next = kinds.some((one) => one.value === chosen) ? (chosen as Kind) : "all";
    setKind(next);
    change(next === "all" ? null : []);
  };
  return (
    <Stack gap="xs">
      <NativeSelect
        label={label}
        description={description}
        value={kind}
        onChange={(event) => choose(event.currentTarget.value)}
        data={kinds}
        error={kind === "some" ? undefined : error}
      />
      {kind === "some" && (
        <TagsInput
          aria-label={`${label}, selected`}
          description="Enter crm for all tools of the server crm, crm/search for one tool, crm/read_* for a prefix. While the list is empty, no tool is allowed."
          placeholder={value?.length ? "" : "crm"}
          value={[...(value ?? [])]}
          onChange={(chosen) => change(separate(chosen))}
          splitChars={[",", ";", " ", "\n"]}
          maxTags={100}
          data={suggested}
          limit={50}
          openOnFocus={false}
          error={error}
        />
      )}
    </Stack>
  );
}

function kindOf(value: ToolList): Kind {
  if (value === null) return "all";
  return value.length === 0 ? "none" : "some";
}
