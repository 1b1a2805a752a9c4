import { type Static, Type } from '@sinclair/typebox';

const Text = Type.Optional(Type.String());

const State = Type.Object({
  waiting: Type.Optional(Type.Object({ reason: Text, message: Text })),
  running: Type.Optional(Type.Object({})),
  terminated: Type.Optional(Type.Object({ exitCode: Type.Integer(), reason: Text, message: Text })),
});
const ContainerStatus = Type.Object({ name: Type.String(), state: Type.Optional(State) });
const Condition = Type.Object({
  type: Type.String(),
  status: Type.String(),
  reason: Text,
  message: Text,
  lastTransitionTime: Type.Optional(Type.Union([Type.String(), Type.Null()])),
});

/** The parts of a pod that Muster reads. */
export const Pod = Type.Object({
  metadata: Type.Object({
    name: Type.String(),
    uid: Type.String(),
    resourceVersion: Type.String(),
    labels: Type.Optional(Type.Record(Type.String(), Type.String())),
    annotations: Type.Optional(Type.Record(Type.String(), Type.String())),
    deletionTimestamp: Text,
  }),
  spec: Type.Optional(Type.Object({ nodeName: Text })),
  status: Type.Optional(
    Type.Object({
      phase: Text,
      reason: Text,
      message: Text,
      hostIP: Text,
      conditions: Type.Optional(Type.Array(Condition)),
      initContainerStatuses: Type.Optional(Type.Array(ContainerStatus)),
      containerStatuses: Type.Optional(Type.Array(ContainerStatus)),
    }),
  ),
});
export type Pod = Static<typeof Pod>;

export const PodList = Type.Object({
  metadata: Type.Object({ resourceVersion: Type.String(), continue: Text }),
  items: Type.Array(Pod),
});

/** An event of a watch. A bookmark has only the version up to which the watch has come. */
export const PodEvent = Type.Union([
  Type.Object({
    type: Type.Union([Type.Literal('ADDED'), Type.Literal('MODIFIED'), Type.Literal('DELETED')]),
    object: Pod,
  }),
  Type.Object({
    type: Type.Literal('BOOKMARK'),
    object: Type.Object({ metadata: Type.Object({ resourceVersion: Type.String() }) }),
  }),
  Type.Object({
    type: Type.Literal('ERROR'),
    object: Type.Object({ code: Type.Optional(Type.Integer()), message: Text }),
  }),
]);

/** The parts of a node that Muster reads. */
export const Node = Type.Object({
  status: Type.Optional(
    Type.Object({
      addresses: Type.Optional(Type.Array(Type.Object({ type: Type.String(), address: Type.String() }))),
    }),
  ),
});
