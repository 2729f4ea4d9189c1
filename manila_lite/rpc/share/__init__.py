"""The RPC contracts of the share service."""

from manila_lite.rpc.share.recovery import *
from manila_lite.rpc.share.replicas import *
from manila_lite.rpc.share.servers import *
from manila_lite.rpc.share.shares import *
