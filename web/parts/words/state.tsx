// A state as a word with an icon, so that it does not depend on color.
import { AlertIcon, CheckCircleIcon, CircleSlashIcon, ClockIcon, DotFillIcon, type Icon } from "@primer/octicons-react";
import { Tag } from "./tag.tsx";

export type StateKind = "good" | "waiting" | "warning" | "bad" | "plain";

const looks: Record<StateKind, { icon: Icon; color: string }> = {
  good: { icon: CheckCircleIcon, color: "green" },
  waiting: { icon: ClockIcon, color: "water" },
  warning: { icon: CircleSlashIcon, color: "orange" },
  bad: { icon: AlertIcon, color: "red" },
  plain: { icon: DotFillIcon, color: "gray" },
};

export function State({ kind, children }: { kind: StateKind; children: string }) {
  const { icon: Shape, color } = looks[kind];
  return <Tag icon={<Shape size={12} fill={`var(--mantine-color-${color}-filled)`} />}>{children}</Tag>;
}
