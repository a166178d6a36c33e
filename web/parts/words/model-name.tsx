// A model's name in a narrow space: cut in the middle, because similar names differ at their ends.
import { Text, type TextProps } from "@mantine/core";

/** The number of characters at the end that always show. */
const tail = 12;

interface ModelNameProps extends TextProps {
  name: string;
}

/** Shows a shortened name. The full name is available as a hint, to screen readers, and when copied. */
export function ModelName({ name, ...text }: ModelNameProps) {
  // A short name needs no extra elements, which matters in lists of ten thousand rows.
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
