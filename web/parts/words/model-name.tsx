// The name of a model where there is little room: cut in its middle, as names that begin alike differ at their ends.
import { Text, type TextProps } from "@mantine/core";

/** Characters at the end that are always there. */
const tail = 12;

interface ModelNameProps extends TextProps {
  name: string;
}

/** All of it for the pointer, and for who listens or copies. */
export function ModelName({ name, ...text }: ModelNameProps) {
  // Most fit anyway, and each element of a row is felt where ten thousand are scrolled through.
  if (name.length <= 2 * tail) {
    return (
      <Text
        display="inline-block"
        maw="100%"
        style={{ verticalAlign: "bottom" }}
        {...text}
        title={name}
        component="span"
        truncate
      >
        {name}
      </Text>
    );
  }
  return (
    <Text {...text} title={name} className="model-name" component="span">
      <span className="model-name-start">{name.slice(0, -tail)}</span>
      <span>{name.slice(-tail)}</span>
    </Text>
  );
}
