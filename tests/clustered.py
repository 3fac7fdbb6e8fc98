"""What test_ray runs in a process of its own: a cluster of two machines, of which one or all die while a suite runs."""

import subprocess
import sys
import time
from pathlib import Path

from ray.cluster_utils import Cluster


def main(folder, victim):
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    try:
        doomed = cluster.add_node(num_cpus=1)
        cluster.wait_for_nodes()
        found = ["bench", "tiny.toml", "--store", "found", "--ray", "auto", "--limit", "1", "--json"]
        subprocess.run([sys.executable, "-m", "thetafield", *found], cwd=folder, check=True)
        words = ["bench", "tiny.toml", "--store", "s", "--ray", cluster.address, "--checkpoint-every", "0", "--json"]
        command = [sys.executable, "-m", "thetafield", *words]
        with (folder / "stdout").open("w") as stdout, (folder / "stderr").open("w") as stderr:
            process = subprocess.Popen(command, cwd=folder, stdout=stdout, stderr=stderr)
        # Both machines are in the middle of a trial.
        while len(list(folder.glob("s/work/*/*/checkpoint.safetensors"))) < 2 and process.poll() is None:
            time.sleep(0.02)
        assert process.poll() is None, "the suite was over before a machine could die"
        if victim == "all":
            cluster.shutdown()
            return process.wait(timeout=120)
        cluster.remove_node(doomed, allow_graceful=False)
        print("killed", len(list(folder.glob("s/results/*"))), flush=True)
        return process.wait(timeout=300)
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
