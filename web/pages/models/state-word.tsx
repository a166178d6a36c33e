// How a place where a model runs does: an icon and a word, as not everybody tells colours apart.
import { Group, Text, Tooltip } from "@mantine/core";
import {
  AlertFillIcon,
  CheckCircleFillIcon,
  CircleSlashIcon,
  type Icon,
  XCircleFillIcon,
} from "@primer/octicons-react";
import type { DeploymentStatus } from "../../api/types.ts";

interface Look {
  word: string;
  icon: Icon;
  color: string;
  /** What it means for requests. */
  meaning: string;
}

const green = "light-dark(#1f6b3d, #74c795)";
const amber = "light-dark(#8a5300, #f0b35a)";
const red = "light-dark(#a8261c, #ff9d92)";

export const stateLooks: Record<DeploymentStatus["state"], Look> = {
  ok: { word: "Working", icon: CheckCircleFillIcon, color: green, meaning: "It answered when it was last asked." },
  cooling_down: {
    word: "Cooling down",
    icon: AlertFillIcon,
    color: amber,
    meaning: "It failed a moment ago, so others are tried first.",
  },
  draining: {
    word: "Draining",
    icon: CircleSlashIcon,
    color: amber,
    meaning: "An operator took it out: open requests end, no new ones are sent.",
  },
  unreachable: {
    word: "Unreachable",
    icon: XCircleFillIcon,
    color: red,
    meaning: "It did not answer when it was last asked. It is asked again by itself.",
  },
};

export function StateWord({ state }: { state: DeploymentStatus["state"] }) {
  const { word, icon: Icon, color, meaning } = stateLooks[state];
  return (
    <Tooltip label={meaning} multiline maw={260}>
      <Group gap={6} wrap="nowrap" c={color} display="inline-flex">
        <Icon size={14} aria-hidden="true" />
        <Text span size="sm" c="inherit" style={{ whiteSpace: "nowrap" }}>
          {word}
        </Text>
      </Group>
    </Tooltip>
  );
}
