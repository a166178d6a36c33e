// The system prompt and the parameters of a chat; an empty field leaves the model's default.
import { Group, NumberInput, SimpleGrid, Stack, Switch, TagsInput, Textarea } from "@mantine/core";
import { useState } from "react";
import { useOffer } from "../../api/offer.ts";
import { useRead } from "../../api/queries.ts";
import type { AccountOverview } from "../../api/types.ts";
import { MultiChoice } from "../../parts/editing/multi-choice.tsx";
import type { TypedNumber } from "../../parts/editing/typed-number.ts";
import { SmallButton } from "../../parts/page/buttons.tsx";
import { maxStops, type NumberParameter, numberParameters, type Settings, untouched } from "./settings.ts";
import { maxTools } from "./tool-use.ts";

interface SettingsPanelProps {
  settings: Settings;
  /** Only chats have a system prompt and can be stored. */
  isChat: boolean;
  change(settings: Settings): void;
}

export function SettingsPanel({ settings, isChat, change }: SettingsPanelProps) {
  const { system, numbers, stop, store, tools } = settings;
  // The tools are loaded only for users who come near the field, because each load asks all MCP servers.
  const [isNear, setNear] = useState(tools.length > 0);
  const offer = useOffer({ enabled: isChat && isNear });
  const names = new Set([...tools, ...(offer.data?.tools.map(({ name }) => name) ?? [])]);
  const choices = [...names].map((name) => ({ value: name, label: name }));
  const account = useRead<AccountOverview>("/v1/account");
  const isTouched =
    Object.values(numbers).some((value) => value !== undefined) || stop.length > 0 || store !== undefined;
  return (
    <Stack gap="sm">
      {isChat && (
        <Textarea
          label="System prompt"
          description="Instructions that the model gets before the conversation."
          placeholder="None"
          value={system}
          onChange={(event) => change({ ...settings, system: event.currentTarget.value })}
          autosize
          minRows={3}
          maxRows={12}
        />
      )}
      <SimpleGrid cols={2} spacing="sm" verticalSpacing="sm">
        {numberParameters.map((parameter) => (
          <NumberField
            key={parameter.name}
            parameter={parameter}
            value={numbers[parameter.name]}
            change={(value) => change({ ...settings, numbers: { ...numbers, [parameter.name]: value } })}
          />
        ))}
      </SimpleGrid>
      <TagsInput
        label="Stop sequences"
        description="The answer ends at any of these texts. Press Enter after each. \n is a new line."
        placeholder={stop.length === 0 ? "None" : ""}
        value={[...stop]}
        onChange={(value) => change({ ...settings, stop: value })}
        maxTags={maxStops}
        splitChars={[]}
      />
      {isChat && (
        <MultiChoice
          label="Tools"
          description="The model calls these tools without asking, even tools that change data."
          placeholder={tools.length === 0 ? "None" : ""}
          data={choices}
          value={tools}
          onChange={(value) => change({ ...settings, tools: value })}
          maxValues={maxTools}
          onMouseEnter={() => setNear(true)}
          onFocusCapture={() => setNear(true)}
          nothingFoundMessage={offer.isLoading ? "Loading the tools" : "No matching tool"}
          limit={50}
        />
      )}
      {isChat && (
        <Switch
          label="Save to Chats"
          description={store === undefined ? "Uses the account's default." : "Applies to new messages."}
          checked={store ?? account.data?.store_chats ?? false}
          onChange={(event) => change({ ...settings, store: event.currentTarget.checked })}
        />
      )}
      <Group justify="end">
        <SmallButton disabled={!isTouched} onClick={() => change({ ...untouched, system, tools })}>
          Reset parameters
        </SmallButton>
      </Group>
    </Stack>
  );
}

interface NumberFieldProps {
  parameter: NumberParameter;
  value: TypedNumber | undefined;
  change(value: TypedNumber | undefined): void;
}

function NumberField({ parameter: { label, hint, min, max, step, whole = false }, value, change }: NumberFieldProps) {
  return (
    <NumberInput
      label={label}
      description={hint}
      placeholder="Default"
      value={value ?? ""}
      onChange={(given) => change(given === "" ? undefined : given)}
      min={min}
      max={max}
      step={step}
      allowDecimal={!whole}
      allowNegative={min < 0}
      labelProps={{ fz: 13 }}
      inputWrapperOrder={["label", "input", "description", "error"]}
    />
  );
}
