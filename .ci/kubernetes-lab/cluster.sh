# shellcheck shell=bash
# Part of `lab`: starts and ends a cluster. Sourced, not run.
#
# The machine gets one network interface, linked to the "hub": a network namespace with a bridge,
# etcd, the API server, the managers and a name server. Each node has namespaces of its own (network,
# mounts, host name), a link to that bridge, containerd, a kubelet and a kube-proxy.
#
# NODES, NET, SERVICES, HUB, HOST, LINK and CGROUP come from the lab's settings (write_settings).
# shellcheck disable=SC2153
set -euo pipefail

readonly API_PORT=16443
readonly PODS=10.244
readonly CLUSTER_DOMAIN=cluster.local
readonly SERVICE_ISSUER=https://kubernetes.default.svc
# The time after which a silent node counts as lost. The default (40 s) makes tests long.
readonly NODE_GRACE=20s
# Kubelets change these for the whole machine.
readonly KUBELET_SYSCTLS=(
  vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops
  kernel.keys.root_maxkeys kernel.keys.root_maxbytes
)

up() {
  local api_only='' node nodes=2 net=${LAB_NET:-10.77.0}
  while (($#)); do
    case $1 in
      --api-only) api_only=yes ;;
      --nodes)
        nodes=${2-}
        shift $(($# > 1))
        ;;
      *) die "up: unknown option '$1'" ;;
    esac
    shift
  done
  [[ $nodes =~ ^[1-9][0-9]?$ ]] || die 'up: --nodes takes a number from 1 to 99'
  [[ $net =~ ^([0-9]{1,3}\.){2}[0-9]{1,3}$ ]] || die "up: LAB_NET is '$net', not three bytes such as 10.78.0"
  [[ -z $api_only ]] || nodes=0
  need_root
  need_programs "$nodes"
  [[ -z $(ip -o address show to "$net.0/24") ]] ||
    die "up: this machine has an address in $net.0/24. End the lab that is up, or set LAB_NET, to 10.78.0 for instance"

  make_folder
  write_settings "$nodes" "$net"
  ln -sfn "$LAB_DIR" "$LAB_CACHE/current"
  find_lab

  make_cgroups
  make_hub
  make_certificates
  start_api_server
  if ((NODES)); then
    start_managers
    start_name_server
    make_pause_image
    for ((node = 1; node <= NODES; node++)); do make_node "$node"; done
    for ((node = 1; node <= NODES; node++)); do start_node "$node"; done
    wait_until 60 'all nodes to be ready' nodes_are_ready
    wait_until 60 'the default service account' kubectl get serviceaccount default
    # This machine reaches Services through the first node.
    ip route add "$SERVICES.0/24" via "$NET.1" dev "$LINK"
  fi
  say "up after $SECONDS s"
  echo "export LAB_DIR=$LAB_DIR"
  echo "export KUBECONFIG=$LAB_DIR/admin.kubeconfig"
}

# Ends all processes in this lab's cgroups. Each process that the lab started is in one of them, with
# its children, and no other process is. Namespaces, links and mounts end with their processes.
down() {
  need_root
  local pids
  for _ in {1..50}; do
    mapfile -t pids < <(cgroup_processes)
    ((${#pids[@]})) || break
    kill -KILL "${pids[@]}" 2>/dev/null || true
    sleep 0.2
  done
  ((${#pids[@]} == 0)) || die "down: these processes do not end: ${pids[*]}"
  wait_until 60 'the cgroups to be removed' remove_cgroups
  # It may have gone with the hub already.
  ip link delete "$LINK" 2>/dev/null || true
  [[ ! -e $LAB_DIR/sysctl.conf ]] || sysctl -q -p "$LAB_DIR/sysctl.conf"
  if [[ $(readlink "$LAB_CACHE/current" || true) == "$LAB_DIR" ]]; then rm "$LAB_CACHE/current"; fi
  rm -rf --one-file-system "$LAB_DIR"
}

need_programs() {
  local program programs=("${ALL_PROGRAMS[@]}")
  (($1)) || programs=("${API_PROGRAMS[@]}")
  for program in "${programs[@]}"; do
    [[ -x $PROGRAMS/bin/$program ]] || die "up: $program is not built: run 'lab build'"
  done
  for program in busybox conntrack dnsmasq ip iptables nsenter openssl sysctl unshare; do
    type -P "$program" >/dev/null || die "up: $program is not installed: run 'lab build'"
  done
}

make_folder() {
  if [[ ${LAB_DIR-} ]]; then
    mkdir -p "$LAB_DIR"
    [[ -z $(ls -A "$LAB_DIR") ]] || die "up: $LAB_DIR is not empty: run 'lab down' first, or take another folder"
    LAB_DIR=$(readlink -f "$LAB_DIR")
  else
    LAB_DIR=$(mktemp -d --tmpdir muster-lab.XXXXXX)
  fi
  chmod 700 "$LAB_DIR"
  # Nodes have a /run, /var/lib and /var/log of their own, which hide the machine's.
  local folder
  for folder in "$LAB_DIR" "$(readlink -f "$PROGRAMS")"; do
    [[ ! $folder/ =~ ^/(run|var/lib|var/log)/ ]] ||
      die "up: $folder: LAB_DIR and LAB_CACHE must not lie in /run, /var/lib or /var/log"
  done
  [[ $(stat -f -c %T "$LAB_DIR") != overlayfs ]] ||
    die "up: $LAB_DIR lies on an overlay, on which containers cannot run: set LAB_DIR to a folder on a disk"
  mkdir "$LAB_DIR"/{log,names,pids,pki}
}

# Keeps with the lab what later commands need to know.
write_settings() {
  local nodes=$1 net=$2 id name
  id=$(sha256sum <<<"$LAB_DIR" | head -c 8)
  cat >"$LAB_DIR/settings" <<SETTINGS
NODES=$nodes
NET=$net
SERVICES=10.96.${net##*.}
HUB=$net.254
HOST=$net.253
LINK=lab-$id
CGROUP=muster-lab-$id
SETTINGS
  for name in "${KUBELET_SYSCTLS[@]}"; do
    echo "$name = $(sysctl -n "$name")"
  done >"$LAB_DIR/sysctl.conf"
}

# --- processes

# With cgroup v1 each controller has a tree of its own. The lab has a folder in each.
cgroup_folders() { findmnt -rn -t cgroup,cgroup2 -o TARGET | sed "s#\$#/$CGROUP#"; }

cgroup_processes() {
  local folder
  while read -r folder; do
    [[ ! -d $folder ]] || find "$folder" -name cgroup.procs -exec cat {} + 2>/dev/null
  done < <(cgroup_folders) | sort -un
}

make_cgroups() {
  local folder node
  while read -r folder; do
    mkdir -p "$folder"
    take_cpus "$folder"
    for ((node = 1; node <= NODES; node++)); do
      mkdir "$folder/node$node"
      take_cpus "$folder/node$node"
    done
  done < <(cgroup_folders)
}

# In v1 a new cpuset has no CPUs, and nothing can run in it.
take_cpus() {
  local file
  [[ -e $1/cpuset.cpus && -e $1/cpuset.sched_load_balance ]] || return 0
  for file in cpuset.cpus cpuset.mems; do cat "$1/../$file" >"$1/$file"; done
}

remove_cgroups() {
  local folder
  while read -r folder; do
    [[ ! -d $folder ]] || find "$folder" -depth -type d -exec rmdir {} + || return
  done < <(cgroup_folders)
}

# start NAME PLACE COMMAND...: starts a daemon in a place, which is "hub" or a node
start() {
  local name=$1 place=$2 entry=() tree group
  shift 2
  # The process that holds a place's namespaces has the name of the place, and makes them.
  [[ $name == "$place" ]] || find_entry "$place"
  # Of several trees, one is enough to find the processes again.
  tree=$(findmnt -rn -t cgroup -O pids -o TARGET | head -n 1)
  group=${tree:-$(findmnt -rn -t cgroup2 -o TARGET | head -n 1)}/$CGROUP/$place/daemons
  mkdir -p "$group"
  (
    echo "$BASHPID" >"$group/cgroup.procs"
    exec setsid "${entry[@]}" "$@"
  ) </dev/null >>"$LAB_DIR/log/$name.log" 2>&1 &
  echo $! >"$LAB_DIR/pids/$name"
}

# within PLACE COMMAND...: runs a command in a place
within() {
  local entry
  find_entry "$1"
  "${entry[@]}" "${@:2}"
}

# Sets `entry` to the command that runs another one in a place.
find_entry() {
  entry=(nsenter -t "$(pid_of "$1")" --net)
  [[ $1 == hub ]] || entry+=(--mount --uts)
  entry+=(env "PATH=$PROGRAMS/root/usr/bin:$PROGRAMS/root/usr/sbin:$PATH")
}

# make_namespaces PLACE OPTION...: they live as long as a process is in them, so one is there that sleeps
make_namespaces() {
  start "$1" "$1" unshare "${@:2}" sleep infinity
  wait_until 10 "the namespaces of $1" grep -qx sleep "/proc/$(pid_of "$1")/comm"
}

pid_of() { cat "$LAB_DIR/pids/$1"; }

# A pid counts only within this lab's cgroups: another process may have got its number.
is_running() { cgroup_processes | grep -x "$(pid_of "$1")" >/dev/null; }

# --- the hub

make_hub() {
  make_namespaces hub --net
  ip link add "$LINK" type veth peer name host netns "$(pid_of hub)"
  ip address add "$HOST/24" dev "$LINK"
  ip link set "$LINK" up
  within hub ip link set lo up
  within hub ip link add bridge type bridge
  within hub ip address add "$HUB/24" dev bridge
  within hub ip link set bridge up
  within hub ip link set host master bridge up
}

start_api_server() {
  local pki=$LAB_DIR/pki admission=()
  # Default service accounts are made by the manager, which is not there.
  ((NODES)) || admission=(--disable-admission-plugins=ServiceAccount)
  # Without fsync: nothing here has to outlive a crash of the machine.
  start etcd hub etcd --unsafe-no-fsync --data-dir "$LAB_DIR/etcd" \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
  start kube-apiserver hub "$PROGRAMS/bin/kube-apiserver" \
    --etcd-servers=http://127.0.0.1:2379 \
    --advertise-address="$HUB" --secure-port="$API_PORT" \
    --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --client-ca-file="$pki/ca.crt" --authorization-mode=Node,RBAC --allow-privileged "${admission[@]}" \
    --service-cluster-ip-range="$SERVICES.0/24" \
    --service-account-issuer="$SERVICE_ISSUER" --service-account-key-file="$pki/accounts.pub" \
    --service-account-signing-key-file="$pki/accounts.key" \
    --kubelet-client-certificate="$pki/apiserver-kubelet.crt" --kubelet-client-key="$pki/apiserver-kubelet.key" \
    --kubelet-certificate-authority="$pki/ca.crt" --kubelet-preferred-address-types=InternalIP
  wait_until 90 'the API server' kubectl get --raw /readyz
}

start_managers() {
  start kube-controller-manager hub "$PROGRAMS/bin/kube-controller-manager" \
    --kubeconfig="$LAB_DIR/admin.kubeconfig" --leader-elect=false \
    --root-ca-file="$LAB_DIR/pki/ca.crt" --service-account-private-key-file="$LAB_DIR/pki/accounts.key" \
    --node-monitor-grace-period="$NODE_GRACE" --flex-volume-plugin-dir="$LAB_DIR/volume-plugins"
  start kube-scheduler hub "$PROGRAMS/bin/kube-scheduler" \
    --kubeconfig="$LAB_DIR/admin.kubeconfig" --leader-elect=false
}

# Nodes and pods ask it. The names are in files, one for each name of `lab name`, and one for those of Services.
start_name_server() {
  start dnsmasq hub dnsmasq --keep-in-foreground --conf-file=/dev/null --user=root --pid-file= --log-facility=- \
    --bind-interfaces --listen-address="$HUB" --no-resolv --no-hosts --local=/#/ --hostsdir="$LAB_DIR/names"
}

# --- certificates

make_certificates() {
  local pki=$LAB_DIR/pki node
  make_key ca
  openssl req -x509 -config /dev/null -key "$pki/ca.key" -subj /CN=lab -days 365 \
    -addext basicConstraints=critical,CA:TRUE -out "$pki/ca.crt"
  make_key accounts
  openssl pkey -in "$pki/accounts.key" -pubout -out "$pki/accounts.pub"
  make_certificate apiserver /CN=kube-apiserver "IP:$HUB,IP:127.0.0.1,IP:$SERVICES.1,DNS:kubernetes.default.svc"
  make_certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver DNS:localhost
  make_certificate admin /O=system:masters/CN=admin DNS:localhost
  for ((node = 1; node <= NODES; node++)); do
    make_certificate "node$node" "/O=system:nodes/CN=system:node:node$node" "IP:$NET.$node,DNS:node$node"
  done
  kubeconfig admin >"$LAB_DIR/admin.kubeconfig"
}

make_key() { openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$LAB_DIR/pki/$1.key"; }

# make_certificate NAME SUBJECT ADDRESSES
make_certificate() {
  local pki=$LAB_DIR/pki
  make_key "$1"
  openssl req -x509 -config /dev/null -key "$pki/$1.key" -subj "$2" -days 365 -CA "$pki/ca.crt" -CAkey "$pki/ca.key" \
    -addext "subjectAltName=$3" -addext extendedKeyUsage=serverAuth,clientAuth -out "$pki/$1.crt"
}

# kubeconfig NAME: prints one that contains its certificates, so that it can be copied elsewhere
kubeconfig() {
  local pki=$LAB_DIR/pki
  cat <<YAML
apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: lab, user: $1}}]
clusters:
- name: lab
  cluster: {server: "https://$HUB:$API_PORT", certificate-authority-data: $(base64 -w 0 "$pki/ca.crt")}
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w 0 "$pki/$1.crt")
    client-key-data: $(base64 -w 0 "$pki/$1.key")
YAML
}

# --- nodes

# The image of the process that holds a pod's namespaces.
make_pause_image() {
  mkdir -p "$LAB_DIR/pause/bin"
  cp "$(type -P busybox)" "$LAB_DIR/pause/bin/sleep"
  make_docker_archive "$LAB_DIR/pause.tar" docker.io/library/pause:1 "$LAB_DIR/pause" \
    '{"Cmd":["/bin/sleep","1000000000"]}'
}

make_node() {
  local node=$1 name=node$1 folder=$LAB_DIR/node$1 other
  mkdir -p "$folder"/{cni,lib,log}
  echo "nameserver $HUB" >"$folder/resolv.conf"
  make_namespaces "$name" --net --mount --uts --propagation private

  within hub ip link add "$name" type veth peer name eth0 netns "$(pid_of "$name")"
  within hub ip link set "$name" master bridge up
  within "$name" hostname "$name"
  within "$name" sysctl -q -w net.ipv4.ip_forward=1
  within "$name" ip link set lo up
  within "$name" ip address add "$NET.$node/24" dev eth0
  within "$name" ip link set eth0 up
  # Pods reach those of other nodes. There is no default route: nothing may depend on the outside.
  for ((other = 1; other <= NODES; other++)); do
    ((other == node)) || within "$name" ip route add "$PODS.$other.0/24" via "$NET.$other"
  done
  # kube-proxy replaces these addresses, but without a route nothing is sent to them.
  within "$name" ip route add "$SERVICES.0/24" via "$HUB"

  # What containerd, runc, the network plugins and the kubelet leave in these folders stays within the lab.
  within "$name" mount --make-rshared /
  within "$name" mount --bind "$folder/lib" /var/lib
  within "$name" mount --bind "$folder/log" /var/log
  within "$name" mount -t tmpfs -o mode=755 run /run
  within "$name" mount --bind "$folder/resolv.conf" /etc/resolv.conf

  write_containerd_settings "$node"
  write_kubelet_settings "$node"
}

# restrict_oom_score_adj: without CAP_SYS_RESOURCE no process may lower its value, and every pod would fail.
# The "opt" plugin would make folders in /opt.
write_containerd_settings() {
  local node=$1 folder=$LAB_DIR/node$1
  cat >"$folder/containerd.toml" <<TOML
version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/library/pause:1"
  disable_apparmor = true
  disable_hugetlb_controller = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$folder/registries"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "$PROGRAMS/root/usr/lib/cni"
    conf_dir = "$folder/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "$PROGRAMS/root/usr/sbin/runc"
TOML
  cat >"$folder/cni/lab.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "lab", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": true, "ipam": {
    "type": "host-local", "ranges": [[{"subnet": "$PODS.$node.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}, "snat": true}
]}
JSON
}

# The disk of a CI machine may be nearly full, which is no reason to evict; a removed image cannot be pulled again.
write_kubelet_settings() {
  local node=$1 pki=$LAB_DIR/pki
  cat >"$LAB_DIR/node$node/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NET.$node
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $pki/node$node.crt
tlsPrivateKeyFile: $pki/node$node.key
cgroupDriver: cgroupfs
cgroupRoot: /$CGROUP/node$node
enforceNodeAllocatable: []
failSwapOn: false
clusterDNS: [$HUB]
clusterDomain: $CLUSTER_DOMAIN
resolvConf: ""
hairpinMode: none
volumePluginDir: /var/lib/kubelet/volume-plugins
nodeStatusUpdateFrequency: 4s
evictionHard: {nodefs.available: 1%, imagefs.available: 1%, memory.available: 50Mi}
imageGCHighThresholdPercent: 100
YAML
  kubeconfig "node$node" >"$LAB_DIR/node$node/kubeconfig"
}

start_node() {
  local node=$1 name=node$1 folder=$LAB_DIR/node$1
  start "containerd-$node" "$name" containerd --config "$folder/containerd.toml" --log-level warn
  wait_until 30 "containerd of $name" within "$name" ctr version
  within "$name" ctr --namespace k8s.io images import "$LAB_DIR/pause.tar" >/dev/null
  start "kubelet-$node" "$name" "$PROGRAMS/bin/kubelet" \
    --config "$folder/kubelet.yaml" --kubeconfig "$folder/kubeconfig" \
    --hostname-override="$name" --node-ip="$NET.$node" \
    --container-runtime=remote --container-runtime-endpoint=unix:///run/containerd/containerd.sock
  # Limits of the whole machine stay (conntrack). Answers of a pod to one on the same node would not pass the node, and
  # so not get the address of the Service, unless requests come from the node (masquerade-all).
  start "kube-proxy-$node" "$name" "$PROGRAMS/bin/kube-proxy" \
    --kubeconfig "$LAB_DIR/admin.kubeconfig" --hostname-override="$name" --proxy-mode=iptables \
    --cluster-cidr="$PODS.0.0/16" --masquerade-all --conntrack-max-per-core=0 \
    --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s \
    --healthz-bind-address=127.0.0.1 --metrics-bind-address=127.0.0.1
}

nodes_are_ready() {
  local ready
  read -ra ready < <(kubectl get nodes -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')
  [[ ${#ready[@]} -eq $NODES && ${ready[*]} =~ ^True(\ True)*$ ]]
}
