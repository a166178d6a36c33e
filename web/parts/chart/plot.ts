// uPlot in its own chunk, which is loaded with the first chart.
export { default as Plot } from "uplot";
