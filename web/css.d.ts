// Style sheets are imported for their side effect: the build bundles them.
declare module "*.css";
